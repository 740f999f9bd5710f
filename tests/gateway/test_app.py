from tests.support import builders
async def test_x(system, client, gateway):
    t = await builders.a_tenant(system, credits=100)
    k = await builders.a_key(system, t.tenant_id)
    c = client(k)
    for m,p,kw in [("GET","/healthz",{}),("GET","/readyz",{}),("GET","/nothing",{}),("PUT","/v1/jobs",{}),("GET","/v1/jobs",{}),
      ("POST","/v1/crawls",dict(json={"url":"https://example.com/","max_pages":5})),("POST","/v1/crawls",{}),("POST","/v1/crawls",dict(json={"url":"https://example.com/","max_pages":"5"})),
      ("GET","/v1/jobs/xyz",{}),("GET","/v1/jobs?limit=0",{}),("GET","/v1/jobs?kind=zz",{}),("GET","/v1/credits",{}),("GET","/v1/credits/entries?since=2026",{}),("GET","/v1/keys",{}),("GET","/schema",{}),("GET","/schema/openapi.json",{}),("GET","/schema/style.css",{}),("POST","/v1/crawls",dict(content=b"x"*300000)),("GET","/metrics",{}),("OPTIONS","/v1/jobs",{}),("HEAD","/v1/jobs",{}), ("GET","/v1/jobs/xyz/results?after=zz",{})]:
        r = await c.request(m,p,**kw)
        print("=====",m,p,r.status_code,{k:v for k,v in r.headers.items() if k not in ('content-security-policy','referrer-policy','server','date','x-content-type-options','x-request-id')}); print(r.text[:600])
    import json
    print([json.loads(l)['exception'][-700:] for l in gateway.log.splitlines() if 'exception' in l][:3])
    assert 0
