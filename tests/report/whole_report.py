"""A report that has every section: what no command makes, so that nothing can be forgotten in a format."""

from __future__ import annotations

from msgspec.structs import replace

from ncclcheck.model.authentication import Authentication
from ncclcheck.model.bench import WrongElement
from ncclcheck.model.benchmarks.ceiling import Comparable, Reference
from ncclcheck.model.events import LogFile
from ncclcheck.model.finding import Evidence
from ncclcheck.model.report import LogReport, Report, Used
from ncclcheck.report.bench_report import bench_report
from tests.builders import cluster
from tests.isolation_builders import SLOW, isolated
from tests.matrix_builders import two_leaves
from tests.mesh_builders import mesh_point, mesh_result
from tests.report.samples import full_report
from tests.report.text.test_fleet_text import FLEET
from tests.report.text.test_mesh_text import PLACED
from tests.soak_builders import healthy_lines, soaked
from tests.trial_builders import FAST, tried

LOG = LogReport(
    "named",
    (LogFile("job.log", 10, 1),),
    (Used("version", "2.27.7", differs=True),),
    (Evidence((), "a line", "seen", "it is normal", "job.log:3"),),
)


def fuller_report() -> Report:
    """Also with published figures, a wrong element, what the NCCL log of the benchmark told, and what logs told."""
    made = full_report(2, per_node=2)
    assert made.bench is not None
    first, *others = made.bench.points
    row = Reference(
        "H100", 8, 1, "nvlink", first.op, first.size_bytes, 18.0, "A", "a file", "2024", note="ring"
    )
    bench = replace(
        made.bench,
        points=(replace(first, first_wrong=WrongElement(3, 1, 7, "nan", "1.5"), unstable="varies"), *others),
        references=(Comparable(row, first.size_bytes, first.busbw_gb_s),),
        used=(Used("network", "IB"), Used("channels", "16", ("node01",))),
    )
    kept = tuple(check for check in made.checks if check.slug in ("gpu-count", "pcie-acs", "fabric-manager"))
    return replace(made, bench=bench, log=LOG, checks=kept)


def whole_report() -> Report:
    """Return the report without its log, since what `explain` prints in a terminal is a page of its own."""
    made, measured = full_report(2, per_node=2), fuller_report().bench
    meshed, raced = mesh_result(mesh_point(1000, 2000)), tried(FAST)
    assert measured is not None
    bench = replace(
        measured,
        mesh=bench_report(replace(cluster(4), bench=meshed), meshed).mesh,
        trials=raced.trials,
        race=raced.race,
    )
    return replace(
        made,
        bench=bench,
        isolation=isolated(nodes=(SLOW,)),
        matrix=two_leaves(),
        soak=soaked(healthy_lines()),
        fleet=FLEET,
        mesh=PLACED,
        authentication=Authentication("munge"),
    )
