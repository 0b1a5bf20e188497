"""The studio's routes. Commands come by HTTP, events and patients go by one WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from anatomica.anatomy.catalogue import ANATOMIES, Anatomy
from anatomica.anatomy.vocabularies import VOCABULARIES
from anatomica.data.phantoms import phantom
from anatomica.errors import AnatomicaError, shown
from anatomica.generation.recipe import check_arguments
from anatomica.prior.zoo import shipped
from anatomica.spec.tasks import task
from anatomica.spec.yaml import spec_to_dict
from anatomica.studio.bodies import Asked, Boxes, Named, NewPhantom, SnapTo
from anatomica.studio.catalogue import catalogue
from anatomica.studio.downloads import download
from anatomica.studio.feed import feed
from anatomica.studio.hub import Hub
from anatomica.studio.jobs import Jobs, QueueFullError
from anatomica.studio.markups import read_markups, write_markups
from anatomica.studio.page import page_files
from anatomica.studio.patients import Patient, Shelf
from anatomica.studio.plans import command, plan, read_spec
from anatomica.studio.security import Guard, Key
from anatomica.studio.snap import has_place, snap
from anatomica.studio.surfaces import patient_frame
from anatomica.studio.uploads import UnknownLabelsError, collected, read_upload
from anatomica.studio.worker import Order

PHANTOM_EDGE = 64
"""Voxels along a phantom's edge: those of the shipped models' label maps."""
THREADS = 4
"""Requests that are computed at a time."""


class BusyError(AnatomicaError):
    """This is done for one at a time."""


class Studio:
    """Everything that one server holds."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self.hub, self.shelf = Hub(), Shelf()
        self.jobs = Jobs(self.hub, self.shelf, log)
        self.uploading = asyncio.Lock()  # one file in the memory at a time

    def keep(self, name: str, about: Anatomy, label_map) -> dict[str, Any]:
        """A loaded patient, shown to every page."""
        id = self.shelf.new_id()
        patient = Patient(id, name, about, label_map, patient_frame(id, label_map))
        for gone in self.shelf.add(patient):
            self.hub.publish({"type": "forgotten", "patient": gone})
        self.hub.publish({"type": "patient", "patient": patient.summary()})
        return patient.summary()


def make_app(key: Key, port: int, log: Callable[[str], None] = lambda _: None) -> Guard:
    """The whole app behind its guard."""
    studio = Studio(log)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        studio.hub.start(asyncio.get_running_loop())
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        yield
        studio.jobs.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)
    _errors(app, log)
    _patients(app, studio)
    _asking(app, studio)
    _feed(app, studio)
    _pages(app)  # last: it answers to every path
    return Guard(app, key, port)


def _errors(app: FastAPI, log: Callable[[str], None]) -> None:
    """Whatever goes wrong is a sentence."""

    @app.exception_handler(AnatomicaError)
    def mistake(_: Request, error: AnatomicaError) -> JSONResponse:
        told: dict[str, Any] = {"sentence": str(error)}
        if isinstance(error, UnknownLabelsError):
            return JSONResponse(told | {"labels": error.labels, "vocabularies": list(VOCABULARIES)}, 409)
        return JSONResponse(told, 429 if isinstance(error, QueueFullError | BusyError) else 422)

    @app.exception_handler(RecursionError)
    def nested(_: Request, __: RecursionError) -> JSONResponse:
        return JSONResponse({"sentence": "what was sent is nested too deeply"}, 422)

    @app.exception_handler(RequestValidationError)
    def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"][1:]))
        return JSONResponse({"sentence": f"{where or 'the request'}: {problem['msg']}"}, 422)

    @app.exception_handler(HTTPException)
    def refusal(request: Request, error: HTTPException) -> JSONResponse:
        told = f"{request.method} {shown(request.url.path)}: {error.detail}"
        return JSONResponse({"sentence": told}, error.status_code)

    @app.exception_handler(Exception)
    def failure(_: Request, error: Exception) -> JSONResponse:
        log(f"{type(error).__name__}: {error}")
        return JSONResponse(
            {"sentence": f"that failed ({type(error).__name__}: {shown(str(error), 200)})"}, 500
        )


def _pages(app: FastAPI) -> None:
    """The built page: a fixed set of files, read once, so that no path of a request is ever opened."""
    files = page_files()

    @app.get("/{path:path}")
    def page(path: str) -> Response:
        found = files.get(path or "index.html")
        if found is None:
            return JSONResponse({"sentence": "there is no such page"}, 404)
        return Response(found.data, media_type=found.media_type)


def _about(name: str) -> Anatomy:
    if name not in shipped():
        raise AnatomicaError(f"unknown anatomy {shown(name)}; there are: {', '.join(shipped())}")
    return ANATOMIES[name]


def _patients(app: FastAPI, studio: Studio) -> None:
    @app.get("/api/catalogue")
    def known() -> dict[str, Any]:
        return catalogue()

    @app.get("/api/state")
    def state() -> dict[str, Any]:
        patients = [p.summary() for p in studio.shelf.all()]
        return {"patients": patients, "jobs": studio.jobs.state()}

    @app.post("/api/phantom")
    def add_phantom(asked: NewPhantom) -> dict[str, Any]:
        about = _about(asked.anatomy)
        label_map = phantom(about.name, asked.seed, PHANTOM_EDGE).label_map
        return studio.keep(f"phantom {asked.seed}", about, label_map)

    @app.post("/api/upload")
    async def upload(request: Request, anatomy: str, name: str = "", mapping: str = "") -> dict[str, Any]:
        about, rules = _about(anatomy), _mapping(mapping)
        if studio.uploading.locked():
            raise BusyError("another file is being read; open this one when it is there")
        async with studio.uploading:
            data = await collected(request.stream())
            label_map = await anyio.to_thread.run_sync(read_upload, data, about, rules)
        title = "".join(c for c in name if c.isprintable())[:60] or "own file"
        return await anyio.to_thread.run_sync(studio.keep, title, about, label_map)

    @app.post("/api/patient/{id}/remove")
    def remove(id: str) -> dict[str, Any]:
        studio.shelf.remove(id)
        studio.hub.publish({"type": "forgotten", "patient": id})
        return {}

    @app.get("/api/patient/{id}/quantities")
    def quantities(id: str) -> dict[str, Any]:
        found = studio.shelf.get(id).statistics
        rows = [] if found is None else found[1]
        told = {x.entry.key: {"value": x.value, "reason": x.reason, "place": has_place(x)} for x in rows}
        return {"values": told}

    @app.get("/api/patient/{id}/{kind}")
    def file(id: str, kind: str) -> Response:
        made = download(studio.shelf.get(id), kind, studio.shelf)
        told = {"Content-Disposition": f'attachment; filename="{made.name}"'}
        return Response(made.data, media_type=made.media_type, headers=told)


def _mapping(text: str) -> str | dict[str | int, str] | None:
    """A vocabulary's name, or a JSON object of label ids and tissues; never a path."""
    if not text or text in VOCABULARIES:
        return text or None
    try:
        content = json.loads(text)
        if isinstance(content, dict) and all(isinstance(v, str) for v in content.values()):
            return {int(k) if k.isdecimal() else k: v for k, v in content.items()}
    except (ValueError, RecursionError):  # a label of more digits than Python reads is a ValueError too
        pass
    raise AnatomicaError("a label mapping is a vocabulary's name, or one tissue for each label")


def _asking(app: FastAPI, studio: Studio) -> None:
    @app.post("/api/warm")
    def warm(anatomy: Named) -> dict[str, Any]:
        studio.jobs.warm(_about(anatomy.name).name)
        return {}

    @app.post("/api/task")
    def paper_task(asked: Named) -> dict[str, Any]:
        return spec_to_dict(task(asked.name))

    @app.post("/api/plan")
    def make_plan(asked: Asked) -> dict[str, Any]:
        spec = read_spec(asked.yaml, asked.spec, asked.asks, asked.lines, _about(asked.anatomy))
        patient = None if asked.patient is None else studio.shelf.get(asked.patient)
        same = patient is not None and patient.about.name == asked.anatomy
        like = f"{asked.anatomy}-{asked.patient}.nii.gz" if same and asked.reference else None
        line = command(spec, asked.anatomy, asked.samples, asked.seed, asked.steps, like)
        return plan(spec, patient if same else None) | {"command": line}

    @app.post("/api/generate")
    def generate(asked: Asked) -> dict[str, Any]:
        about = _about(asked.anatomy)
        spec = read_spec(asked.yaml, asked.spec, asked.asks, asked.lines, about)
        spec = None if spec is None else spec.of(about)
        patient = None if asked.patient is None or not asked.reference else studio.shelf.get(asked.patient)
        reference = None if patient is None or patient.about is not about else patient.label_map
        arguments = check_arguments(
            {"steps": asked.steps, "tries": asked.tries}, samples=asked.samples, seed=asked.seed
        )
        order = Order("", about.name, spec, None if spec is None else reference, arguments)
        return {"job": studio.jobs.submit(order)}

    @app.post("/api/cancel")
    def cancel(asked: Named) -> dict[str, Any]:
        return {"cancelled": studio.jobs.cancel(asked.name)}

    @app.post("/api/snap")
    def snapped(asked: SnapTo) -> dict[str, Any]:
        return snap(asked.snap, studio.shelf.get(asked.patient))

    @app.post("/api/markups/write")
    def to_slicer(asked: Boxes) -> dict[str, Any]:
        return write_markups(asked.boxes)

    @app.post("/api/markups/read")
    def from_slicer(content: dict[str, Any]) -> dict[str, Any]:
        return {"boxes": [box.model_dump() for box in read_markups(content)]}


def _feed(app: FastAPI, studio: Studio) -> None:
    @app.websocket("/ws")
    async def events(socket: WebSocket) -> None:
        await feed(socket, studio.hub, studio.shelf)
