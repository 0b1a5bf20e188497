"""Two hearts with stated ventricles, in five lines, and what they measure.

python examples/guided_heart.py
"""

from pathlib import Path

from anatomica import Options, generate, load_model, load_spec, save

HERE = Path(__file__).parent


def show(progress) -> None:
    """Called once per step; `errors` has one list per sample."""
    now = ", ".join(f"{e.constraint} {e.error:.2g} %" for e in progress.errors[0])
    print(f"step {progress.step.index + 1} of {progress.step.count}: {now}")


def main(out: Path = Path("out/guided_heart"), steps: int | None = None) -> None:
    model = load_model("cardiac")
    options = Options(trace=True, steps=steps)
    spec = load_spec(HERE / "dilated_right_ventricle.yaml")
    for sample in generate(model, spec, seeds=range(2), options=options, callback=show):
        save(sample.label_map, out / f"heart-{sample.seed}.nii.gz")
        print(sample.seed, sample.met, *(f"{c.constraint}: {c.achieved:.1f} mL" for c in sample.checks))


if __name__ == "__main__":
    main()
