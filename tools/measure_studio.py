"""How quick the studio is: first surface, valid sample beside the command line, frames while dragging.

    python tools/measure_studio.py --rounds 3

Starts a server and Chromium with software rendering; prints a table and writes results/studio.json and .md.
Times on a busy machine say more about its load than about the studio, so the processor time of Chromium's
processes is told beside the frames: what one frame costs, whoever else computes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from anatomica.evaluate.bench.writing import write_bench
from anatomica.machine import usable_cores
from anatomica.prior.zoo import shipped_hash
from anatomica.studio.serve import prepare

FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
SECONDS = 4.0
"""How long each drag takes."""
TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")

DRAG = """([target, x, y, seconds]) => new Promise(done => {
    const { stage } = window.studio, element = document.querySelector(target), begun = performance.now();
    const mouse = { bubbles: true, pointerId: 1, pointerType: 'mouse', button: -1, buttons: 1 };
    const go = now => {
        const t = (now - begun) / 1000;
        const clientX = x + 40 * Math.sin(3 * t), clientY = y + 25 * Math.sin(2 * t);
        element.dispatchEvent(new PointerEvent('pointermove', { ...mouse, clientX, clientY }));
        if (t < seconds) requestAnimationFrame(go);
        else done(stage.frames.filter(f => f >= begun).length / ((performance.now() - begun) / 1000));
    };
    requestAnimationFrame(go);
})"""
"""One pointer event with every frame, as a browser hands them on; the first press and the last are real."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="samples that are timed; 0 times only drags")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for studio.json and .md")
    asked = parser.parse_args()
    found = measured(asked.rounds)
    text = markdown(found)
    print(text)
    write_bench(asked.out, "studio", found, text, {"cardiac": shipped_hash("cardiac")}, module="studio.serve")


def measured(rounds: int) -> dict:
    """Everything that the tables say, of one server and one browser."""
    server, listening, address = prepare(0)
    threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True).start()
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(600_000)
        page.goto(address)
        page.click("#tour-skip")
        page.click("#load-phantom")
        page.wait_for_selector(".thumb.chosen img")
        page.wait_for_function("() => Object.keys(window.studio.store.told.values).length > 0")
        found = {"load": round(os.getloadavg()[0], 1), "triangles": triangles(page), "drags": drags(page)}
        if rounds:
            found |= sampling(page, rounds)
        browser.close()
    server.should_exit = True
    return found


def markdown(found: dict) -> str:
    """The tables; what is wanted stands beside what was found."""
    count = found["triangles"]
    lines = [
        f"`python tools/measure_studio.py`, Chromium with software rendering, {usable_cores()} cores, load "
        f"{found['load']} when the drags began. A heart of 64^3: {count['fine']:,} triangles, "
        f"{count['coarse']:,} while the camera turns.",
        "",
        f"| {SECONDS:.0f} s of dragging | frames per second (30 wanted) | ms of drawing per frame |",
        "|---|---|---|",
    ]
    for name, row in found["drags"].items():
        cost = f"{row['gpu_ms_per_frame']:.0f}"
        lines.append(f"| {name.replace('_', ' ')} | {row['frames_per_second']:.0f} | {cost} |")
    if "whole_s" not in found:
        return "\n".join(lines) + "\n"
    rows = {
        "click to the first surface (2 wanted)": "first_surface_s",
        "click to the finished patient": "whole_s",
        "the same command, a new process": "command_line_s",
        "drawing in that command": "of_that_drawing_s",
    }
    lines += [
        "",
        f"A heart with its left ventricle at the population's median, {found['valid']} valid:",
        "",
        "| seconds | median | each |",
        "|---|---|---|",
    ]
    for name, key in rows.items():
        each = ", ".join(f"{x:.2f}" for x in found[key])
        lines.append(f"| {name} | {statistics.median(found[key]):.2f} | {each} |")
    lines += [
        "",
        f"Click to patient takes {found['ratio']:.2f} times the command (1.3 wanted), and "
        f"{found['ratio_to_drawing']:.2f} times the drawing in it: the browser draws on the same cores.",
    ]
    return "\n".join(lines) + "\n"


def triangles(page: Page) -> dict:
    return page.evaluate("() => [...window.studio.models.values()][0].triangles")


def drags(page: Page) -> dict:
    """Three drags: a box in a slice, a face of it in the 3D view, and the camera."""
    page.click("#add-box")
    page.click("#mode-scale")
    page.wait_for_function("() => window.studio.store.current")
    box = page.locator("#slice-axial").bounding_box()
    view = page.locator("#view3d").bounding_box()
    assert box is not None
    assert view is not None
    middle = (box["x"] + box["width"] / 2 + 4, box["y"] + box["height"] / 2 + 4)
    found = {
        "box_in_slice": drag(page, "#slice-axial", *middle),
        "face_in_3d": drag(page, "#view3d", *page.evaluate("() => window.studio.view.handles.screen(2, 1)")),
    }
    page.keyboard.press("Delete")
    found["camera"] = drag(page, "#view3d", view["x"] + view["width"] - 60, view["y"] + view["height"] - 60)
    return found


def drag(page: Page, target: str, x: float, y: float) -> dict[str, float]:
    page.mouse.move(x, y)
    page.mouse.down()
    page.wait_for_timeout(300)
    before = processor_ms()
    per_second = page.evaluate(DRAG, [target, x, y, SECONDS])
    after = processor_ms()
    page.mouse.up()
    page.wait_for_function("() => window.studio.store.current")
    page.wait_for_timeout(500)
    frames = max(per_second * SECONDS, 1)
    cost = {f"{kind}_ms_per_frame": round((after[kind] - before[kind]) / frames, 1) for kind in after}
    return {"frames_per_second": round(per_second, 1)} | cost


def processor_ms() -> dict[str, float]:
    """Processor time so far of the browser's two processes that draw, among this process's descendants."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            words = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        for kind in ("gpu-process", "renderer"):
            if f"--type={kind}".encode() in words:
                used[pid] = (kind.split("-")[0], (int(fields[11]) + int(fields[12])) * TICK_MS)
    found = {"gpu": 0.0, "renderer": 0.0}
    for pid, (kind, spent) in used.items():
        while pid and pid != os.getpid():
            pid = parents.get(pid, 0)
        if pid:
            found[kind] += spent
    return found


def sampling(page: Page, rounds: int) -> dict:
    """Seconds from the click to the first surface and to the end, and of the same command.

    The command is a new process each time, which imports and loads the model and writes a report; `drawing`
    is only what it says itself that the sample took.
    """
    page.evaluate(
        """() => window.studio.store.edit(doc => {
            const q = window.studio.store.anatomy.quantities.find(q => q.key === 'lv.volume_ml');
            doc.constraints = [];
            doc.ask = { 'lv.volume_ml': { how: 'equal', value: Math.round(q.quantiles[10]) } };
            doc.reference = false;
        })"""
    )
    page.wait_for_function("() => window.studio.store.current")
    first, whole, command, drawing, valid = [], [], [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        spec = Path(folder) / "spec.yaml"
        spec.write_text(page.evaluate("() => window.studio.store.told.plan.yaml"), encoding="utf-8")
        for seed in range(rounds + 1):
            page.evaluate(f"() => window.studio.store.edit(doc => void (doc.seed = {seed}))")
            page.evaluate("() => performance.clearMarks()")
            begun = page.evaluate("() => performance.now()")
            page.click("#generate")
            page.wait_for_function("() => performance.getEntriesByName('studio-surface').length > 0")
            surface = page.evaluate("() => performance.getEntriesByName('studio-surface')[0].startTime")
            page.wait_for_function("() => window.studio.store.told.jobs.at(-1).state === 'done'")
            end = page.evaluate("() => performance.now()")
            if seed == 0:
                continue  # the first one warms both sides up
            valid += page.evaluate("() => window.studio.store.patient.valid")
            first.append((surface - begun) / 1000)
            whole.append((end - begun) / 1000)
            words = [sys.executable, "-m", "anatomica", "generate", "--spec", str(spec), "--samples", "1"]
            words += ["--seed", str(seed), "--out", f"{folder}/{seed}", "--quiet"]
            clock = time.perf_counter()
            subprocess.run(words, check=True)
            command.append(time.perf_counter() - clock)
            report = json.loads(Path(f"{folder}/{seed}/report.json").read_text(encoding="utf-8"))
            drawing.append(report["samples"][0]["seconds"])
    return {
        "first_surface_s": [round(x, 2) for x in first],
        "whole_s": [round(x, 2) for x in whole],
        "command_line_s": [round(x, 2) for x in command],
        "of_that_drawing_s": [round(x, 2) for x in drawing],
        "ratio": round(statistics.median(whole) / statistics.median(command), 2),
        "ratio_to_drawing": round(statistics.median(whole) / statistics.median(drawing), 2),
        "valid": f"{valid} of {rounds}",
    }


if __name__ == "__main__":
    main()
