"""How the kernel behaves as part of a process: interrupts, threads, memory. Each in a process of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOURCE = str(Path(__file__).parents[2] / "src")
pytestmark = pytest.mark.skipif(
    "ANATOMICA_KERNEL" in os.environ, reason="measures the kernel as it is shipped"
)


def start(code: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCE},
        preexec_fn=heed_ctrl_c,
    )


def heed_ctrl_c() -> None:
    """A shell's background jobs ignore Ctrl-C, and so would their children, these among them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(code: str) -> str:
    process = start(code)
    out, error = process.communicate(timeout=300)
    assert process.returncode == 0, error
    return out


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_stops_a_large_batch(threads: int):
    """The batch would take minutes; the interrupt must end it within a moment and leave the kernel usable."""
    process = start(f"""
import numpy as np
from anatomica.measurement.homology import persistence
volume = np.random.default_rng(0).random((96, 96, 96), dtype=np.float32)
print("ready", flush=True)
try:
    persistence([volume] * 2000, threads={threads})
except KeyboardInterrupt:
    print("interrupted", len(persistence(volume[:8, :8, :8]).dim) > 0, flush=True)
""")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    out, error = process.communicate(timeout=60)
    assert out == "interrupted True\n", error
    assert time.monotonic() - sent < 20  # a busy machine; a quiet one needs a tenth of a second


def test_the_gil_is_released():
    """Another Python thread makes progress while a batch is computed."""
    out = run("""
import threading, numpy as np
from anatomica.measurement.homology import persistence
done, ticks = threading.Event(), []
def tick():
    while not done.wait(0.005):
        ticks.append(1)
thread = threading.Thread(target=tick)
thread.start()
persistence([np.random.default_rng(0).random((64, 64, 64), dtype=np.float32)] * 8, threads=1)
done.set(); thread.join()
print(len(ticks))
""")
    assert int(out) > 5


MEMORY = """
import resource, numpy as np
from anatomica.measurement.homology import persistence
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 2**10
def forget_peak():
    open("/proc/self/clear_refs", "w").write("5")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's memory counters")
def test_memory_does_not_grow_over_a_thousand_calls():
    out = run(
        MEMORY
        + """
rng = np.random.default_rng(0)
batches = [[rng.random((16, 17, 18)) for _ in range(2)], [rng.random((20, 20, 20), dtype=np.float32)]]
def calls(n):
    for i in range(n):
        persistence(batches[i % 2], construction="VT"[i // 2 % 2], clamp=0.05 if i % 3 else None)
calls(100)
before = resident()
calls(1000)
print(resident() - before)
"""
    )
    assert float(out) < 4


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads Linux's memory counters")
def test_extra_memory_at_128_is_bounded():
    """White noise has the most critical cells of all inputs."""
    out = run(
        MEMORY
        + """
volume = np.random.default_rng(0).random((128, 128, 128), dtype=np.float32)
persistence(volume[:4, :4, :4])
forget_peak()
before = peak()
persistence(volume)
print(peak() - before)
"""
    )
    assert float(out) < 150
