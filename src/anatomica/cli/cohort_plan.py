"""What `anatomica cohort` prints: the plan, the time it takes, and what became of the requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anatomica.cli.output import Output

if TYPE_CHECKING:
    from rich.table import Table

    from anatomica.cohort.plan import Plan


def plan_dict(plan: Plan) -> dict[str, Any]:
    """The plan in numbers: requests, how they are distributed, how many are infeasible."""
    import numpy as np

    from anatomica.cohort.feasible import infeasible
    from anatomica.cohort.maker import population_of

    known = population_of(plan.spec)
    reasons = [infeasible(plan.request(i), plan, known) for i in range(plan.size)]
    refused = [x for x in reasons if x]
    rows = {
        key: {
            "mean": float(plan.values[:, i].mean()),
            "sd": float(plan.values[:, i].std()),
            "least": float(plan.values[:, i].min()),
            "most": float(plan.values[:, i].max()),
        }
        for i, key in enumerate(plan.keys)
    }
    names = list(plan.spec.strata)
    counts = np.bincount(plan.strata, minlength=max(1, len(names))).tolist()
    return {
        "name": plan.spec.name,
        "size": plan.size,
        "design": plan.spec.design,
        "model": plan.maker.model,
        "targets": rows,
        "strata": dict(zip(names, counts, strict=False)),
        "population": None if known is None else known.source,
        "infeasible": len(refused),
        "infeasible_example": refused[0] if refused else "",
    }


def print_plan(output: Output, plan: Plan, found: dict[str, Any]) -> None:
    from rich.table import Table

    from anatomica.report.statistics import shown

    table = Table(
        "target",
        "mean",
        "sd",
        "least",
        "most",
        title=f"{plan.spec.name}: {plan.size} requests, {plan.spec.design}",
    )
    for key, row in found["targets"].items():
        table.add_row(key, *(shown(row[k]) for k in ("mean", "sd", "least", "most")))
    if plan.keys:
        output.print(table)
    for name, count in found["strata"].items():
        output.print(f"stratum {name}: {count}")
    if found["population"] is None:
        output.print(
            "The model's folder has no percentiles of quantities, so no request is refused as infeasible."
        )
    elif found["infeasible"]:
        output.print(
            f"{found['infeasible']} requests are infeasible, such as {found['infeasible_example']}",
            style="yellow",
        )


def print_time(output: Output, plan: Plan, seconds: float, workers: int | None) -> None:
    from anatomica.machine import usable_cores

    count = workers or usable_cores()
    hours = plan.size * seconds / count / 3600
    output.print(
        f"One candidate took {seconds:.1f} s: about {hours:.2g} hours with {count} workers if every request "
        f"is met at once, at most {plan.spec.tries} times as long."
    )


def flow_table(flow: dict[str, Any]) -> Table:
    from rich.table import Table

    from anatomica.cohort.page import FLOW

    table = Table("requests", "")
    for name, words in FLOW.items():
        table.add_row(str(flow[name]), words)
    return table
