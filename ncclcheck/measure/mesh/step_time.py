"""How long the communication of one step of the model takes."""

from __future__ import annotations

from collections.abc import Sequence

from ncclcheck.model.benchmarks.mesh_bench import MeshPoint, StepTime


def step_time(points: Sequence[MeshPoint], not_counted: tuple[str, ...] = ()) -> StepTime | None:
    """Return the sum over all calls of a step, each as slow as its slowest group; None without a model.

    Nothing is taken to overlap, neither with computing nor with other calls: what a job hides of it is not known here.
    Also None where the backend does not do a call of the step. `not_counted`: dimensions without their calls.
    """
    if not any(point.per_step for point in points) or any(point.unsupported for point in points):
        return None
    slowest = [(point.per_step, point.groups[0]) for point in points]
    seconds = sum(times * group.time_us for times, group in slowest) / 1e6
    low_s = sum(times * (group.low_us or group.time_us) for times, group in slowest) / 1e6
    high_s = sum(times * (group.high_us or group.time_us) for times, group in slowest) / 1e6
    return StepTime(round(seconds, 6), round(low_s, 6), round(high_s, 6), not_counted)
