"""The page, driven as a person drives it: one browser, one session, step by step.

With STUDIO_PICTURES=docs/images the pictures of docs/studio.md are taken anew.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect, sync_playwright
from scipy.spatial.transform import Rotation
from typer.testing import CliRunner

from anatomica.anatomy.catalogue import ANATOMIES
from anatomica.anatomy.label_map import LabelMap
from anatomica.anatomy.labels import LabelTable
from anatomica.anatomy.nifti import encode, load
from anatomica.cli import app
from anatomica.data.phantoms import phantom
from anatomica.generation.recipe import read_recipe
from anatomica.studio.serve import prepare

FLAGS = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
"""WebGL without a graphics card; the sandbox does not work for root, as whom containers run tests."""
LONG = 300_000
"""ms; generous, because a machine may be busy with other things."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server, listening, address = prepare(0)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield address
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[Page]:
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    assert browser_path, "install Chromium: make browser, or sudo apt-get install chromium"
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=browser_path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="dark")
        page.set_default_timeout(LONG)
        expect.set_options(timeout=LONG)
        page.goto(address)
        yield page
        browser.close()


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("STUDIO_PICTURES"):
        expect(page.locator(".toast")).to_have_count(0)
        page.wait_for_timeout(300)
        page.screenshot(path=Path(folder) / f"studio-{name}.png")


def test_a_session(page: Page, tmp_path: Path) -> None:
    complaints: list[str] = []
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    take_the_tour(page)
    start_from_a_phantom(page)
    look_at_tissues(page)
    pull_a_face_of_a_box(page, tmp_path)
    pull_a_turned_box_in_a_slice(page)
    take_boxes_to_slicer_and_back(page, tmp_path)
    work_by_keyboard(page)
    begin_with_a_task(page)
    ask_for_a_volume(page)
    edit_the_yaml(page)
    generate_until_valid(page, tmp_path)
    save_everything(page, tmp_path)
    compare_two(page)
    cancel_a_job(page)
    open_a_broken_file(page)
    reload(page)
    open_a_file_with_unknown_labels(page)
    snap_to_a_level_of_an_aorta(page)
    # A spec with a mistake, a broken file and unknown labels are refused, which the browser notes.
    assert [c for c in complaints if "status of 422" not in c and "status of 409" not in c] == []


def take_the_tour(page: Page) -> None:
    expect(page.locator(".tour .count")).to_have_text("1 of 5")
    for n in range(2, 6):
        page.click("#tour-next")
        expect(page.locator(".tour .count")).to_have_text(f"{n} of 5")
    page.click("#tour-next")
    expect(page.locator(".tour")).to_have_count(0)
    assert "token" not in page.url


def start_from_a_phantom(page: Page) -> None:
    page.fill("#start-seed", "3")
    page.click("#load-phantom")
    expect(page.locator(".thumb.chosen img")).to_have_count(1)
    expect(page.locator("#badge")).to_have_text("phantom 3")
    # Every tissue of the heart is listed with its volume, and the canvas shows something.
    expect(page.locator("#tissues li")).to_have_count(len(ANATOMIES["cardiac"].table.tissues))
    assert colours(page) > 50
    expect(page.locator('[data-value="lv.volume_ml"]')).not_to_have_text("…")
    picture(page, "start")


def colours(page: Page) -> int:
    """Different colours in the 3D view."""
    return page.evaluate(
        """() => new Promise(done => requestAnimationFrame(() => {
            const { stage } = window.studio; stage.draw();
            const gl = stage.renderer.getContext();
            const [w, h] = [Math.floor(gl.drawingBufferWidth / 2), gl.drawingBufferHeight];
            const data = new Uint8Array(4 * w * h);
            gl.readPixels(0, 0, w, h, gl.RGBA, gl.UNSIGNED_BYTE, data);
            const found = new Set();
            for (let i = 0; i < data.length; i += 64) found.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
            done(found.size);
        }))"""
    )


def marked(page: Page, pane: Locator) -> int:
    """Pixels of a view that have the colour of the chosen box."""
    return page.evaluate(
        """([left, top]) => new Promise(done => requestAnimationFrame(() => {
            const { stage } = window.studio; stage.draw();
            const gl = stage.renderer.getContext(), at = stage.host.getBoundingClientRect();
            const [w, h] = [170, 170], data = new Uint8Array(4 * w * h);
            gl.readPixels(left - at.left, at.bottom - top - h, w, h, gl.RGBA, gl.UNSIGNED_BYTE, data);
            let found = 0;
            for (let i = 0; i < data.length; i += 4)
                found += data[i] > 240 && Math.abs(data[i + 1] - 176) < 12 && data[i + 2] < 50;
            done(found);
        }))""",
        pane.evaluate("e => { const r = e.getBoundingClientRect(); return [r.left, r.top]; }"),
    )


def measured(page: Page) -> float:
    """The volume on the only card, once it belongs to the box that is shown."""
    expect(page.locator("#domains .card")).to_have_attribute("aria-busy", "false")
    return float(page.inner_text("[data-measured]").split()[0])


def look_at_tissues(page: Page) -> None:
    before = colours(page)
    page.click("#solo-RV")
    expect(page.locator("#tissues li.hidden")).to_have_count(len(ANATOMIES["cardiac"].table.tissues) - 1)
    assert colours(page) < before
    page.click("#solo-RV")
    colour = page.locator('[data-focus="colour-RV"]')
    colour.fill("#00ff00")
    assert page.evaluate("() => window.studio.store.look('RV').colour") == "#00ff00"
    colour.dblclick()
    expect(colour).not_to_have_value("#00ff00")


def domain(page: Page) -> dict:
    return page.evaluate("() => window.studio.store.doc.constraints[0].domain")


def pull_a_face_of_a_box(page: Page, tmp_path: Path) -> None:
    page.click("#add-box")
    page.select_option('[data-focus="tissue-0"]', "LV")
    page.select_option('select[aria-label="snap the box to"]', "tissue LV")
    page.click("#mode-scale")
    page.wait_for_function("() => window.studio.store.told.plan?.constraints[0]?.domains[0]?.volume_ml > 100")
    for pane in page.locator(".slice").all():
        assert marked(page, pane), "the slices show the chosen box"
    before, snapped = measured(page), domain(page)
    size, centre = snapped["size_mm"], snapped["centre_mm"]
    x, y = page.evaluate("() => window.studio.view.handles.screen(2, 1)")
    drag(page, (x, y), (x, y + 40))
    after = domain(page)
    assert after["size_mm"][2] < size[2] - 3
    assert after["size_mm"][:2] == size[:2]
    # The opposite face has not moved.
    low = centre[2] - size[2] / 2
    assert after["centre_mm"][2] - after["size_mm"][2] / 2 == pytest.approx(low, abs=0.05)
    shown = measured(page)
    assert shown < before - 1
    assert domain(page) == after
    picture(page, "domains")
    page.click("#tab-spec")
    (tmp_path / "box.yaml").write_text(page.input_value("#yaml"))
    patient = save(page, "nifti", tmp_path / "phantom.nii.gz")
    words = ["measure", str(patient), "--anatomy", "cardiac", "--spec", str(tmp_path / "box.yaml"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    theirs = json.loads(done.stdout)["constraints"][0]["domains"][0]["volume_ml"]
    assert shown == pytest.approx(theirs, rel=1e-3)  # four digits are shown
    whole = page.evaluate("() => window.studio.store.told.plan.constraints[0].domains[0].volume_ml")
    assert whole == pytest.approx(theirs, rel=1e-6)
    page.click("#undo")
    page.wait_for_function(f"() => window.studio.store.doc.constraints[0].domain.size_mm[2] === {size[2]}")
    page.click("#redo")
    page.wait_for_function(f"() => window.studio.store.doc.constraints[0].domain.size_mm[2] < {size[2]} - 3")


def drag(page: Page, start: Sequence[float], end: Sequence[float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*((a + b) / 2 for a, b in zip(start, end, strict=True)))
    page.mouse.move(*end)
    page.mouse.up()


def in_axial_slice(page: Page, point: Sequence[float]) -> list[float]:
    """Where a point in RAS mm is on the screen."""
    return page.evaluate(
        """(p) => {
            const slice = window.studio.slices[0], r = slice.element.getBoundingClientRect();
            const [x, y] = slice.toPixels({ getComponent: k => p[k] });
            return [r.left + x, r.top + y];
        }""",
        list(point),
    )


def pull_a_turned_box_in_a_slice(page: Page) -> None:
    """An edge moves one face along its normal, a corner two; what lies opposite stays."""
    expect(page.locator("#notice")).to_contain_text("asks for nothing")
    page.fill('[data-input="rotation_deg-2-0"]', "30")
    page.press('[data-input="rotation_deg-2-0"]', "Enter")
    centre = domain(page)["centre_mm"]
    page.evaluate("(cursor) => window.studio.store.show({ cursor })", centre)
    page.locator("#slice-axial").focus()
    for _ in range(3):
        page.keyboard.press("+")
    assert page.evaluate("() => window.studio.store.view.zoom") > 1.7
    for sides in ((1, 0), (1, 1)):
        before = domain(page)
        turn = Rotation.from_euler("xyz", before["rotation_deg"], degrees=True)
        half = np.array(before["size_mm"]) / 2 * [*sides, 0]
        held = turn.apply(half) + before["centre_mm"]
        outward = turn.apply([5.0 * s for s in (*sides, 0)])
        drag(page, in_axial_slice(page, held), in_axial_slice(page, held + outward))
        after = domain(page)
        grown = np.subtract(after["size_mm"], before["size_mm"])
        assert grown == pytest.approx([5.0 * s for s in (*sides, 0)], abs=0.7)  # a pixel has a millimetre
        half_now = np.array(after["size_mm"]) / 2 * [*sides, 0]
        opposite, now = (turn.apply(-h) + d["centre_mm"] for h, d in ((half, before), (half_now, after)))
        assert now == pytest.approx(opposite, abs=0.1)
    start = domain(page)
    inside = in_axial_slice(page, start["centre_mm"])
    drag(page, inside, (inside[0] + 20, inside[1]))
    assert domain(page)["size_mm"] == start["size_mm"]
    assert domain(page)["centre_mm"][0] < start["centre_mm"][0] - 3  # the patient's left is on the right
    page.click("#reset-view")
    assert page.evaluate("() => window.studio.store.view.zoom") == 1


def take_boxes_to_slicer_and_back(page: Page, tmp_path: Path) -> None:
    before = domain(page)
    path = save(page, "markups", tmp_path / "domains.mrk.json")
    page.locator("#domains .card header button").nth(1).click()
    expect(page.locator("#domains .card")).to_have_count(0)
    choose_file(page, path)
    expect(page.locator("#domains .card")).to_have_count(1)
    for key in ("centre_mm", "size_mm", "rotation_deg"):
        assert domain(page)[key] == pytest.approx(before[key], abs=1e-3)


def work_by_keyboard(page: Page) -> None:
    page.locator("#view3d").focus()
    page.keyboard.press("Delete")
    expect(page.locator("#domains .card")).to_have_count(0)
    page.keyboard.press("b")
    expect(page.locator("#domains .card")).to_have_count(1)
    start = domain(page)["centre_mm"]
    page.keyboard.press("Shift+ArrowUp")
    assert domain(page)["centre_mm"][2] == start[2] + 5
    page.keyboard.press("Control+z")
    assert domain(page)["centre_mm"] == start
    page.keyboard.press("Control+y")
    assert domain(page)["centre_mm"][2] == start[2] + 5
    page.keyboard.press("r")
    expect(page.locator("#mode-rotate")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    assert page.evaluate("() => window.studio.store.view.selected") is None
    cursor = page.evaluate("() => window.studio.store.view.cursor[2]")
    page.locator("#slice-axial").focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("() => window.studio.store.view.cursor[2]") > cursor


def begin_with_a_task(page: Page) -> None:
    page.click("#tab-spec")
    page.select_option("#task", "right-ventricle")
    page.wait_for_function(
        "() => window.studio.store.doc.name === 'right-ventricle' && window.studio.store.current"
    )
    expect(page.locator("#yaml-problem")).to_have_text("")
    assert "name: right-ventricle" in page.input_value("#yaml")
    assert measured(page) > 20
    page.locator("#domains .card header button").nth(1).click()
    expect(page.locator("#domains .card")).to_have_count(0)


def save(page: Page, kind: str, path: Path) -> Path:
    page.click("#downloads")
    page.keyboard.press("Escape")
    expect(page.locator(f"#download-{kind}")).not_to_be_visible()
    page.keyboard.press("Enter")
    with page.expect_download() as wait:
        page.click(f"#download-{kind}")
    wait.value.save_as(path)
    return path


def ask_for_a_volume(page: Page) -> None:
    page.click("#tab-targets")
    page.fill("#quantity-search", "lv.volume")
    page.click('[data-key="lv.volume_ml"] .quantity-head')
    entry = '[data-input="target-lv.volume_ml"]'
    page.fill(entry, "5000")
    page.press(entry, "Enter")
    warning = page.locator('[data-key="lv.volume_ml"] .warning')
    expect(warning).to_contain_text("Not feasible")
    warning.locator("button").click()
    expect(warning).to_have_count(0)
    page.select_option('[data-focus="how-lv.volume_ml"]', "range")
    asked = page.evaluate("() => window.studio.store.doc.ask['lv.volume_ml']")
    assert asked["value"] < asked["high"]
    page.wait_for_function("() => window.studio.store.current")
    expect(page.locator("#asked")).to_have_text("1 asked")
    expect(page.locator("#notice")).to_be_hidden()
    page.select_option('[data-focus="how-lv.volume_ml"]', "equal")
    # The target follows the mouse over the histogram; its middle is near the middle of the population.
    box = page.locator('[data-key="lv.volume_ml"] .histogram').bounding_box()
    assert box is not None
    above, height = (lambda share: box["x"] + share * box["width"]), box["y"] + box["height"] / 2
    page.mouse.click(above(0.7), height)
    far = page.evaluate("() => window.studio.store.doc.ask['lv.volume_ml'].value")
    drag(page, (above(0.7), height), (above(0.45), height))
    assert page.evaluate("() => window.studio.store.doc.ask['lv.volume_ml'].value") < far
    quantiles = page.evaluate(
        "() => window.studio.store.anatomy.quantities.find(q => q.key === 'lv.volume_ml').quantiles"
    )
    chosen = page.evaluate("() => window.studio.store.doc.ask['lv.volume_ml'].value")
    assert quantiles[0] < chosen < quantiles[-1]
    page.fill(entry, str(round(quantiles[10])))
    page.press(entry, "Enter")
    page.wait_for_function("() => window.studio.store.told.plan.yaml.includes('lv.volume_ml')")
    picture(page, "quantities")


def edit_the_yaml(page: Page) -> None:
    page.click("#tab-spec")
    text = page.input_value("#yaml")
    page.fill("#yaml", text.replace("anatomy:", "anatomi:"))
    expect(page.locator("#yaml-problem")).to_contain_text("anatomi")
    page.fill("#yaml", text)
    expect(page.locator("#yaml-problem")).to_have_text("")
    expect(page.locator("#command")).to_contain_text('anatomica generate cardiac --set "lv.volume_ml = ')


def generate_until_valid(page: Page, tmp_path: Path) -> None:
    page.uncheck("#field-reference")
    page.click("#generate")
    page.wait_for_function("() => window.studio.store.told.jobs.at(-1)?.steps.at(-1)?.step >= 14")
    page.wait_for_function("() => performance.getEntriesByName('studio-surface').length > 0")
    picture(page, "sampling")
    expect(page.locator("#verdict")).to_have_attribute("data-verdict", "valid")
    expect(page.locator("#badge")).to_contain_text("valid")
    expect(page.locator("#job-state")).to_contain_text("Finished")
    expect(page.locator(".checks tbody tr.met")).not_to_have_count(0)
    asked = page.evaluate("() => window.studio.store.patient.checks[0].requested")
    patient = save(page, "nifti", tmp_path / "made.nii.gz")
    found = load(patient, ANATOMIES["cardiac"]).volume_ml("LV")
    assert found == pytest.approx(asked, rel=0.03)


def save_everything(page: Page, tmp_path: Path) -> None:
    assert save(page, "gltf", tmp_path / "a.glb").read_bytes()[:4] == b"glTF"
    with zipfile.ZipFile(save(page, "stl", tmp_path / "a.zip")) as archive:
        assert any("LV" in name for name in archive.namelist())
    assert "<html" in save(page, "report", tmp_path / "report.html").read_text(encoding="utf-8")
    recipe = read_recipe(save(page, "recipe", tmp_path / "report.json"))
    assert recipe.arguments.samples == 1


def compare_two(page: Page) -> None:
    page.click("#compare-slider")
    expect(page.locator("#divider")).to_be_visible()
    expect(page.locator("#view3d .badge.other")).to_have_text("phantom 3")
    line = page.locator(".divider-line").bounding_box()
    assert line is not None
    middle = (line["x"] + line["width"] / 2, line["y"] + 100)
    drag(page, middle, (middle[0] - 80, middle[1]))
    assert page.evaluate("() => window.studio.store.view.divider") < 0.4
    page.click("#compare-side")
    expect(page.locator(".second")).to_be_visible()
    page.click("#theme")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.click("#palette")
    page.click("#tab-run")
    assert colours(page) > 50
    picture(page, "compare")
    page.click("#palette")
    page.click("#theme")
    page.keyboard.press("Escape")
    page.evaluate("() => window.studio.store.show({ compare: 'off' })")


def cancel_a_job(page: Page) -> None:
    page.fill("#field-steps", "1000")
    page.press("#field-steps", "Enter")
    page.click("#generate")
    page.wait_for_function("() => window.studio.store.told.jobs.at(-1)?.steps.at(-1)?.steps === 1000")
    # A click of Playwright's waits for two still frames; beside busy cores the job may end before them.
    page.dispatch_event("#cancel", "click")
    expect(page.locator("#job-state")).to_contain_text("Cancelled")
    expect(page.locator("#cancel")).to_have_count(0)
    page.fill("#field-steps", "")
    page.press("#field-steps", "Enter")


def choose_file(page: Page, file: Path | FilePayload) -> None:
    with page.expect_file_chooser() as chooser:
        page.click("#open-file")
    chooser.value.set_files(file)


def drop_file(page: Page, name: str, data: bytes) -> None:
    dropped = page.evaluate_handle(
        """([name, bytes]) => {
            const dropped = new DataTransfer();
            dropped.items.add(new File([new Uint8Array(bytes)], name));
            return dropped;
        }""",
        [name, list(data)],
    )
    page.dispatch_event("body", "drop", {"dataTransfer": dropped})


def open_a_broken_file(page: Page) -> None:
    choose_file(page, {"name": "x.nii.gz", "mimeType": "application/gzip", "buffer": b"\x1f\x8bbroken"})
    expect(page.locator(".toast.error")).to_contain_text("X.nii.gz: not a readable NIfTI file")


def open_a_file_with_unknown_labels(page: Page) -> None:
    label_map = phantom("cardiac", 5, 32).label_map
    strange = np.where(label_map.mask("LV"), 70, np.where(label_map.mask("RV"), 71, 0)).astype(np.uint8)
    table = LabelTable.from_names({70: "thing", 71: "<i>other</i> thing"})
    data = encode(LabelMap(strange, label_map.affine, table))
    # Names are text, whatever they look like.
    drop_file(page, "<b>mine</b>.nii.gz", data)
    expect(page.locator("#mapping")).to_contain_text("71 · <i>other</i> thing")
    page.select_option('[data-label="70"]', "LV")
    page.click("#mapping-open")
    expect(page.locator("#badge")).to_have_text("<b>mine</b>.nii.gz")
    expect(page.locator("#badge b, #gallery b")).to_have_count(0)
    expect(page.locator("#tissues li")).to_have_count(1)


def snap_to_a_level_of_an_aorta(page: Page) -> None:
    """Another anatomy has other quantities and places, and no search from before."""
    page.click("#tab-targets")
    page.fill("#quantity-search", "lv.")
    page.click("#anatomy-aortic")
    expect(page.locator("#quantity-search")).to_have_value("")
    page.fill("#start-seed", "4")
    page.click("#load-phantom")
    expect(page.locator("#badge")).to_have_text("phantom 4")
    page.click("#add-box")
    page.select_option('select[aria-label="snap the box to"]', "quantity ao.mid_ascending.diameter_mm")
    page.wait_for_function("() => window.studio.store.doc.constraints[0].domain.size_mm[2] === 2")
    thin = measured(page)
    # A disk of the vessel's diameter, 2 mm thick, lies within the box.
    width = float(page.inner_text('[data-value="ao.mid_ascending.diameter_mm"]').split()[0])
    assert thin == pytest.approx(np.pi * width**2 / 4 * 2 / 1000, rel=0.15)


def reload(page: Page) -> None:
    count = page.locator("#gallery .thumb").count()
    before = page.evaluate("() => JSON.stringify(window.studio.store.doc)")
    page.reload()
    expect(page.locator("#gallery .thumb img")).to_have_count(count)
    assert page.evaluate("() => JSON.stringify(window.studio.store.doc)") == before
    expect(page.locator("#badge")).to_contain_text("valid")
    expect(page.locator(".tour")).to_have_count(0)
