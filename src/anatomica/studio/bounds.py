"""How much the studio takes from a page: checked before anything is read or allocated."""

from __future__ import annotations

MOST_BODY_BYTES = 1 << 20
"""Of a request that is not a file; a spec has a few kB."""
MOST_UPLOAD_BYTES = 256 << 20
"""Of a NIfTI file; a CT's label map has a few MB."""
PATIENCE_S = 10.0
"""Seconds that a request may take over its head, or pause in its body, before the server hangs up."""
MOST_MESSAGE_BYTES = 1 << 16
"""Of a message on the WebSocket; the page's have fewer than 100 bytes."""
MOST_SOCKETS = 8
"""WebSockets at a time: one for each open tab."""
MOST_WAITING = 8
"""Jobs that wait while one runs."""
MOST_SAMPLES = 64
"""Patients of one job."""
MOST_PATIENTS = 128
"""Patients that the server remembers; the oldest go first."""
MOST_EVENTS = 256
"""Events that wait for a page that reads slowly; a page that is further behind is told to load anew."""
MOST_EDGE = 128
"""Voxels along the cube of an uploaded patient as the page shows it."""
