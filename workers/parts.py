"""What all runs of one worker process share: connections, fetcher, robots, threads."""

import msgspec

from jobs.addresses import AddressPolicy
from runtime.content import ContentStore
from runtime.database import Database
from runtime.settings import Settings
from workers.engine.fetch import Fetcher
from workers.engine.page_threads import PageThreads
from workers.engine.politeness import HostGate
from workers.engine.robots import RobotsCache


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """Made once when the process starts, closed when it ends."""

    settings: Settings
    database: Database
    store: ContentStore
    fetcher: Fetcher
    robots: RobotsCache
    gate: HostGate
    threads: PageThreads
    policy: AddressPolicy
