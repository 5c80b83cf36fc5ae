"""A session that is stopped while a look-up of it is under way; in a JVM of its own, which takes its time."""

from __future__ import annotations

import json
from pathlib import Path

from tests.processes import run_python


def test_a_session_that_is_stopped_during_a_look_up(tmp_path: Path) -> None:
    """Its query ends, by an error of Spark's; the session that comes after it skips as before."""
    script = f"""
import json, threading
from pyspark.sql import SparkSession
import es_skipping as esk
from es_skipping.lookup.service import LookupService
from tests.spark.objects_read import num_files
from tests.spark.skipping_on_off import age
from pathlib import Path

def session():
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.es_skipping.store.url", {(tmp_path / "store").as_uri()!r})
    builder = builder.config("spark.es_skipping.query.budget", "60s")
    return esk.configure(builder).getOrCreate()

plain, ended = LookupService.answer, []
armed, asked, stopped = (threading.Event() for _ in range(3))

def late(self, request):
    if armed.is_set():
        asked.set()
        stopped.wait(30)
    return plain(self, request)

LookupService.answer = late
data = {str(tmp_path / "data")!r}
spark = session()
spark.range(0, 40, 1, 4).write.parquet(data)
age(Path(data))
esk.Dataset(spark, data).create_indexes(esk.MinMax("id"))
esk.enable(spark)

def query():
    try:
        ended.append(len(spark.read.parquet(data).where("id < 10").collect()))
    except Exception as error:
        ended.append(type(error).__name__)

armed.set()
thread = threading.Thread(target=query, daemon=True)
thread.start()
found = dict(asked=asked.wait(30))
spark.stop()
stopped.set()
thread.join(30)
found.update(ends=len(ended), rows=[one for one in ended if one != 10 and isinstance(one, int)])
armed.clear()
again = session()
esk.enable(again)
df = again.read.parquet(data).where("id < 10")
found.update(again=len(df.collect()), read=sum(num_files(df)))
print(json.dumps(found))
again.stop()
"""
    assert json.loads(run_python(script, tmp_path, seconds=240).stdout.strip().splitlines()[-1]) == {
        "asked": True,
        "ends": 1,
        "rows": [],
        "again": 10,
        "read": 1,
    }
