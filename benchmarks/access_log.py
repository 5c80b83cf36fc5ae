"""A made-up access log of a cloud database, the same at each run, for the experiments of *Extensible Data Skipping*.

The paper's logs are not public. This one has their shape: days of requests, each day laid out by account, so that an
account's databases lie in few objects of each day. A `quiet` object holds the requests of a few dozen accounts, to
about a hundred databases. A `busy` object holds the requests of one account that keeps a database for each of its
users: about as many distinct names as two thirds of its rows. User agents are those of about seventy programs, which
the package ``ua-parser`` knows; most requests come from a few of them, and each account uses a few.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["AGENT_FUNCTION", "COLUMNS", "Log", "declare_family", "family_of", "object_tables", "write_log"]

DAYS: Final = 20
ACCOUNTS_PER_OBJECT: Final = 30
BUSY_EVERY: Final = 10
"""One object of ten is busy."""
_MODIFIED: Final = 1_700_000_000

COLUMNS: Final = (
    *("db_name", "account_name", "user_agent", "http_request", "http_method", "region", "node", "referrer"),
    *("ts", "status", "response_bytes", "duration_ms"),
)
"""Eight strings, a time and three numbers."""

_PURPOSES: Final = ("orders", "sessions", "catalog", "metrics", "audit", "profiles", "inventory", "messages")
_STAGES: Final = ("production", "staging", "test")
_REQUESTS: Final = (
    *("/_all_docs?include_docs=true&limit=", "/_changes?feed=longpoll&since=", "/_find?bookmark="),
    *("/_design/app/_view/by_date?startkey=", "/_bulk_docs?batch="),
)
_DESKTOP: Final = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
_PHONE: Final = "Mozilla/5.0 (iPhone; CPU iPhone OS 15_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)"
_LINUX: Final = "Mozilla/5.0 (X11; Linux x86_64"
_AGENTS: Final = (
    # the frequent ones first
    f"{_DESKTOP} Chrome/{{n}}.0.0.0 Safari/537.36",
    "okhttp/4.{n}.0",
    "python-requests/2.{n}.0",
    f"{_PHONE} Version/{{n}}.0 Mobile/15E148 Safari/604.1",
    "curl/7.{n}.0",
    "Apache-HttpClient/4.5.{n} (Java/1.8.0_161)",
    f"{_LINUX}; rv:{{n}}.0) Gecko/20100101 Firefox/{{n}}.0",
    "Go-http-client/1.{n}",
    "axios/0.{n}.0",
    "Java/1.8.0_{n}",
    "Boto3/1.{n}.0 Python/3.8.10 Linux/5.4.0 Botocore/1.21.0",
    "aws-sdk-java/1.11.{n} Linux/4.14",
    f"{_DESKTOP} Chrome/{{n}}.0.0.0 Safari/537.36 Edg/{{n}}.0",
    "PostmanRuntime/7.{n}.0",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{n}.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{n}.0 Safari/605",
    "Wget/1.{n}",
    "Python-urllib/3.{n}",
    "libwww-perl/6.{n}",
    "Mozilla/5.0 (compatible; bingbot/2.{n}; +http://www.bing.com/bingbot.htm)",
    "Googlebot/2.{n} (+http://www.google.com/bot.html)",
    "Dalvik/2.1.0 (Linux; U; Android 9; Build/{n})",
    "CFNetwork/978.0.{n} Darwin/18.7.0",
    f"{_DESKTOP} Chrome/{{n}}.0.0.0 Safari/537.36 OPR/{{n}}.0",
    f"{_DESKTOP} Chrome/{{n}}.0.0.0 Safari/537.36 Vivaldi/5.{{n}}",
    f"{_DESKTOP} Chrome/{{n}}.0.0.0 YaBrowser/22.{{n}}.0 Safari/537.36",
    f"{_LINUX}) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/{{n}}.0.0.0 Safari/537.36",
    f"{_PHONE} CriOS/{{n}}.0 Mobile/15E148 Safari/604.1",
    f"{_PHONE} FxiOS/{{n}}.0 Mobile/15E148 Safari/605.1.15",
    "Mozilla/5.0 (Android 11; Mobile; rv:{n}.0) Gecko/{n}.0 Firefox/{n}.0",
    f"{_LINUX}; rv:{{n}}.0) Gecko/20100101 SeaMonkey/2.{{n}}",
    f"{_LINUX}; rv:68.9) Gecko/20100101 Goanna/4.8 PaleMoon/29.{{n}}",
    "Mozilla/5.0 (compatible; MSIE 9.0; Windows NT 6.{n}; Trident/5.0)",
    "Mozilla/5.0 (Unknown; Linux x86_64) AppleWebKit/538.1 (KHTML, like Gecko) PhantomJS/2.{n}.0 Safari/538.1",
    "Mozilla/5.0 (Windows NT 6.1; rv:{n}.0) Gecko/20100101 Thunderbird/{n}.0",
    "Mozilla/5.0 (compatible; YandexBot/3.{n}; +http://yandex.com/bots)",
    "Mozilla/5.0 (compatible; AhrefsBot/7.{n}; +http://ahrefs.com/robot/)",
    "Mozilla/5.0 (compatible; SemrushBot/{n}~bl; +http://www.semrush.com/bot.html)",
    "Mozilla/5.0 (compatible; DotBot/1.{n}; +https://opensiteexplorer.org/dotbot)",
    "Mozilla/5.0 (compatible; MJ12bot/v1.4.{n}; http://mj12bot.com/)",
    "Mozilla/5.0 (compatible; Baiduspider/2.{n}; +http://www.baidu.com/search/spider.html)",
    "DuckDuckBot/1.{n}; (+http://duckduckgo.com/duckduckbot.html)",
    "Slackbot-LinkExpanding 1.{n} (+https://api.slack.com/robots)",
    "Twitterbot/1.{n}",
    "facebookexternalhit/1.{n} (+http://www.facebook.com/externalhit_uatext.php)",
    "LinkedInBot/1.{n} (compatible; Mozilla/5.0; Jakarta Commons-HttpClient/3.1 +http://www.linkedin.com)",
    "masscan/1.{n} (https://github.com/robertdavidgraham/masscan)",
    "aws-cli/1.{n}.0 Python/3.6.9",
    "Cyberduck/7.{n}.0",
    "rclone/v1.{n}.0",
    "Lynx/2.8.{n}dev.1 libwww-FM/2.14",
    "Links (2.{n}; Linux)",
    "Pingdom.com_bot_version_1.{n}_(http://www.pingdom.com/)",
    "UptimeRobot/2.{n}",
    "iTunes/12.{n} (Macintosh; OS X 10.15)",
    "VLC/3.0.{n} LibVLC/3.0.{n}",
    "Roku/DVP-9.{n}",
    "Spotify/8.{n} iOS/15",
    "Apache-CXF/3.{n}",
    "Scrapy/2.{n} (+https://scrapy.org)",
    "CCBot/2.{n} (https://commoncrawl.org/faq/)",
    "archive.org_bot/1.{n}",
    "Applebot/0.{n}",
    "WhatsApp/2.{n}",
    "Discordbot/2.{n}",
)
_VERSIONS: Final = 20
AGENT_FUNCTION: Final = "ua_family"

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Log:
    """How large the log is.

    Parameters
    ----------
    objects
        Its number of Parquet files.
    rows, busy_rows
        Rows of a quiet and of a busy object.
    """

    objects: int
    rows: int = 1_000
    busy_rows: int = 20_000

    def is_busy(self, number: int) -> bool:
        """Whether an object is one account's."""
        return self.busy_rows > 0 and number % BUSY_EVERY == BUSY_EVERY - 1

    def total(self) -> int:
        """All rows."""
        return sum(self.busy_rows if self.is_busy(number) else self.rows for number in range(self.objects))


def object_tables(log: Log) -> Iterator[pa.Table]:
    """The rows of each object, in the order of days and accounts."""
    per_day = -(-log.objects // DAYS)
    for number in range(log.objects):
        day, slot = divmod(number, per_day)
        yield _rows(log, number, day, slot)


def write_log(log: Log, folder: Path) -> int:
    """Write the objects; returns their bytes."""
    folder.mkdir(parents=True)
    size = 0
    for number, table in enumerate(object_tables(log)):
        file = folder / f"part-{number:05}.parquet"
        pq.write_table(table, file, compression="snappy")
        os.utime(file, (_MODIFIED, _MODIFIED))
        size += file.stat().st_size
    return size


def family_of(agent: str | None) -> str | None:
    """The program that a user agent names, by the package ``ua-parser``."""
    from ua_parser import parse_user_agent

    found = parse_user_agent(agent or "")
    return found.family if found else None


def declare_family(spark: Any) -> Any:
    """Register `family_of` in a session, and declare it for indexes."""
    import es_skipping as esk

    return esk.declare_function(AGENT_FUNCTION, family_of, version="ua-parser 1", returns="string", spark=spark)


def _rows(log: Log, number: int, day: int, slot: int) -> pa.Table:
    drawn = np.random.default_rng([26, number])
    busy = log.is_busy(number)
    count = log.busy_rows if busy else log.rows
    accounts = np.sort(slot * ACCOUNTS_PER_OBJECT + (np.zeros(count, np.int64) if busy else _few(drawn, count)))
    names = [f"{_word(account)}-{account:05}" for account in range(accounts[0], accounts[-1] + 1)]
    account = np.array(names, dtype=object)[accounts - accounts[0]]
    database = _users(drawn, account) if busy else _purposes(drawn, account)
    seconds = day * 86_400 + np.sort(drawn.integers(0, 86_400, size=count))
    request = np.array([_REQUESTS[at] for at in range(len(_REQUESTS))], dtype=object)
    called = "/" + database + request[drawn.integers(len(_REQUESTS), size=count)]
    called = called + drawn.integers(1_000, size=count).astype(str).astype(object)
    columns = {
        "ts": pa.array((1_767_225_600 + seconds) * 1_000_000, pa.timestamp("us", tz="UTC")),
        "account_name": account,
        "db_name": database,
        "http_request": called,
        "http_method": np.array(("GET", "POST", "PUT", "DELETE"), dtype=object)[drawn.integers(4, size=count)],
        "status": pa.array(np.array((200, 201, 304, 404, 500))[drawn.integers(5, size=count)], pa.int32()),
        "user_agent": _agents(drawn, accounts),
        "region": np.array([f"region-{slot % 7}"] * count, dtype=object),
        "node": np.array([f"node-{at:03}.db.example.org" for at in range(100)], dtype=object)[
            drawn.integers(100, size=count)
        ],
        "referrer": "https://" + account + ".example.com/" + drawn.integers(50, size=count).astype(str).astype(object),
        "response_bytes": drawn.integers(100, 1_000_000, size=count),
        "duration_ms": drawn.exponential(40, size=count),
    }
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS})


def _few(drawn: np.random.Generator, count: int) -> Numbers:
    """Accounts of one object: a few have most of the requests."""
    return (drawn.power(0.5, size=count) * ACCOUNTS_PER_OBJECT).astype(np.int64)


def _word(account: int) -> str:
    words = ("northwind", "contoso", "fabrikam", "globex", "initech", "umbrella", "soylent", "hooli", "acme", "stark")
    return words[account % len(words)]


def _purposes(drawn: np.random.Generator, account: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """An account's databases, of a service and a stage each."""
    ends = np.array([f"/{purpose}-{stage}" for purpose in _PURPOSES for stage in _STAGES], dtype=object)
    return np.asarray(account + ends[(drawn.power(0.12, size=len(account)) * len(ends)).astype(np.int64)])


def _users(drawn: np.random.Generator, account: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A database for each user."""
    users = drawn.integers(len(account) * 10, size=len(account))
    users[: len(account) // 4] = users[len(account) // 4 : len(account) // 4 * 2]  # some of them come back
    return np.array(
        [
            f"{name}/userdb-{hashlib.md5(str(user).encode()).hexdigest()[:20]}"
            for name, user in zip(account, users.tolist(), strict=True)
        ],
        dtype=object,
    )


def _agents(drawn: np.random.Generator, accounts: Numbers) -> npt.NDArray[Any]:
    """Each account uses two programs in a few versions; one request of 2,000 comes from any of them."""
    kinds, count = len(_AGENTS), len(accounts)
    own = np.stack([(_mixed(accounts, n) ** 8 * kinds).astype(np.int64) for n in range(2)])
    kind = own[drawn.integers(2, size=count), np.arange(count)]
    strangers = drawn.random(count) < 0.0005
    kind[strangers] = drawn.integers(kinds, size=int(strangers.sum()))
    version = 60 + drawn.integers(_VERSIONS, size=count)
    pairs, places = np.unique(kind * 1_000 + version, return_inverse=True)
    texts = np.array([_AGENTS[pair // 1_000].format(n=pair % 1_000) for pair in pairs.tolist()], dtype=object)
    return np.asarray(texts[places])


def _mixed(accounts: Numbers, salt: int) -> npt.NDArray[np.float64]:
    """A number from 0 to 1 for each account, the same wherever it occurs."""
    known, places = np.unique(accounts, return_inverse=True)
    drawn = [np.random.default_rng([27, salt, account]).random() for account in known.tolist()]
    return np.array(drawn)[places]
