"""Tricky URLs by verdict: invalid in every setting, blocked by default, or rebuilt as shown."""

INVALID = """\
http://127.1/
http://127.0.1/
http://2130706433/
http://0x7f000001/
http://0x7f.0.0.1/
http://0177.0.0.1/
http://017700000001/
http://00000177.0.0.1/
http://127.000.000.001/
http://127.0.0.1./
http://0/
http://[fe80::1%25eth0]/
http://[fe80::1%eth0]/
http://0xA9FEA9FE/
http://2852039166/
http://0251.0376.0251.0376/
http://169.254.43518/
http://169.16689662/
http://[::ffff:8.8.8.8]/
http://①②⑦.⓪.⓪.①/
http://①㉗.0.0.1/
http://\uff11\uff12\uff17.\uff10.\uff10.\uff11/
http://127。0。0。1/
http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/
http://loc%61lhost/
http://127%2e0%2e0%2e1/
http://%31%32%37.0.0.1/
http://127.0.0.1%00.public.example/
http://public.example@127.0.0.1/
http://127.0.0.1@public.example/
http://u:p@public.example/
http://@public.example/
http://public.example:80@127.0.0.1:6379/
http://127.0.0.1\\@public.example/
http://public.example\\@127.0.0.1/
http://public.example%2f@127.0.0.1/
http://[::1]:80@public.example/
http:///127.0.0.1/
http:/127.0.0.1/
http:127.0.0.1/
http:\\\\127.0.0.1\\
//127.0.0.1/
http://127.0.0.1:80:80/
http://h:99999/
http://h:0/
http://h:٣/
http://h:+80/
http://h:-1/
http://256.256.256.256/
http://1.2.3.4.5/
http://0x100000000/
http://999/
http://a.0x/
http://[127.0.0.1]/
http://[v1.x]/
http://[::1%]/
http://[::1/
http://[::1]x/
http://[:::1]/
http://[1::2::3]/
http://a..b/
http://.a.example/
http://a.example../
http://-a.com/
http://a-.com/
http://ex\u00adample.com/
http://a\u202eb.com/
http://xn--/
http://xn--a/
http://xn--zzzzz99999.com/
http://exa!mple.com/
http://exa<mple.com/
http://
http://?x
http://:80/
example.com/
/path
""".splitlines()

SPACED = [
    "",
    " ",
    "http://127.0.0.1\x00/",
    "http://127.0.0.1\t/",
    "ht\ntp://127.0.0.1/",
    " http://public.example/",
    "http://public.example/ ",
    "http://public.example/a b",
    "http://public.example\r\nX: y/",
    "http://public.example/\r\nHost: internal",
    "http://public.example/\u2028",
    "http://public.example/\u0085",
    "http://public.example/\x7f",
    "http://public.example/\ud800",
    "http://" + "a" * 64 + ".example/",
    "http://" + ".".join(["a" * 60] * 5) + "/",
    "http://public.example/" + "a" * 2048,
    "http://public.example/" + "é" * 400,
]

BLOCKED = """\
http://127.0.0.1/
http://0.0.0.0/
http://[::]/
http://[::1]/
http://[0:0:0:0:0:0:0:1]/
http://[::ffff:127.0.0.1]/
http://[::ffff:7f00:1]/
http://[::127.0.0.1]/
http://[::ffff:0:127.0.0.1]/
http://[64:ff9b::7f00:1]/
http://[64:ff9b::a9fe:a9fe]/
http://[64:ff9b:1::a9fe:a9fe]/
http://[2002:7f00:1::]/
http://[2002:a9fe:a9fe::]/
http://[2001:0:7f00:1::]/
http://[fe80::1]/
http://[fc00::1]/
http://[fd00:ec2::254]/
http://[fec0::1]/
http://[ff02::1]/
http://[5f00::1]/
http://[3fff::1]/
http://[100::1]/
http://[2001:db8::1]/
http://10.0.0.1/
http://172.16.0.1/
http://172.31.255.255/
http://192.168.0.1/
http://169.254.169.254/latest/meta-data/
http://[::ffff:169.254.169.254]/
http://[::ffff:a9fe:a9fe]/
http://169.254.170.2/
http://169.254.170.23/
http://100.64.0.1/
http://100.100.100.200/
http://192.0.0.192/
http://168.63.129.16/
http://192.0.0.8/
http://192.88.99.1/
http://198.18.0.1/
http://192.0.2.1/
http://198.51.100.1/
http://203.0.113.1/
http://224.0.0.1/
http://240.0.0.1/
http://255.255.255.255/
http://localhost/
http://LOCALHOST/
http://localhost./
http://a.localhost/
http://127.0.0.1#@public.example/
http://127.0.0.1?@public.example/
http://public.example:6379/
http://public.example:22/
http://public.example:25/
http://public.example:11211/
http://public.example:2375/
ftp://public.example/
file:///etc/passwd
gopher://127.0.0.1:6379/_x
dict://127.0.0.1/
data:text/html,x
javascript:alert(1)
jar:http://public.example!/
unix:///var/run/docker.sock
view-source:http://public.example/
blob:http://public.example/x
http://metadata.google.internal/
http://kubernetes.default.svc/
http://redis/
http://postgres/
http://a.internal/
http://printer.local/
http://x.cluster.local/
http://x.svc/
http://router.home.arpa/
""".splitlines()

ALLOWED = {
    "http://172.15.255.255/": "http://172.15.255.255/",
    "http://172.32.0.1/": "http://172.32.0.1/",
    "http://8.8.8.8/": "http://8.8.8.8/",
    "http://[2606:4700::1111]/": "http://[2606:4700::1111]/",
    "http://[2606:4700:0:0:0:0:0:1111]:8080": "http://[2606:4700::1111]:8080/",
    "http://public.example#@127.0.0.1/": "http://public.example/",
    "http://under_score.example/": "http://under_score.example/",
    "http://bücher.example/": "http://xn--bcher-kva.example/",
    "http://BÜCHER.example/": "http://xn--bcher-kva.example/",
    "http://bu\u0308cher.example/": "http://xn--bcher-kva.example/",
    "http://xn--bcher-kva.example/": "http://xn--bcher-kva.example/",
    "http://XN--BCHER-KVA.example/": "http://xn--bcher-kva.example/",
    "http://\N{CYRILLIC SMALL LETTER A}pple.example/": "http://xn--pple-43d.example/",
    "http://faß.example/": "http://xn--fa-hia.example/",
    "http://xn--i-7iq.example/": "http://xn--i-7iq.example/",
    "http://127.0.0.1.nip.io/": "http://127.0.0.1.nip.io/",
    "http://localtest.me/": "http://localtest.me/",
    "HTTP://Public.Example:80/A?B#c": "http://public.example/A?B",
    "https://public.example:443": "https://public.example/",
    "https://public.example:80/": "https://public.example:80/",
    "https://public.example:8443/": "https://public.example:8443/",
    "http://public.example:/": "http://public.example/",
    "http://public.example./": "http://public.example/",
    "http://public.example/a/../b/./c": "http://public.example/b/c",
    "http://public.example/é?ü=1": "http://public.example/%C3%A9?%C3%BC=1",
    "http://public.example/?": "http://public.example/",
    "http://public.example?x": "http://public.example/?x",
    "http://public.example/a@b:c": "http://public.example/a@b:c",
}
