"""The update equation, the potentials and the solver, on toy denoisers and an untrained tiny model."""

import math
from dataclasses import replace

import pytest
import torch

from anatomica.anatomy.catalogue import anatomy
from anatomica.anatomy.frame import Frame
from anatomica.guidance.field_jacobian import jacobian
from anatomica.guidance.gauss_newton import Settings, gauss_newton, newton_step, probes
from anatomica.guidance.guided import corrected, guided
from anatomica.guidance.polish import certified_probes, certified_voxels
from anatomica.guidance.potentials import composite_potential, geometric_potential, topological_potential
from anatomica.guidance.prediction import Prediction
from anatomica.guidance.residuals import EMPTY, EMPTY_TEMPERATURE, FILLING_TOLERANCE, Probe
from anatomica.guidance.solver import Guidance
from anatomica.guidance.substructures import parser
from anatomica.measurement.domains.domain import Domains
from anatomica.measurement.moments import Moments, measure_moments
from anatomica.measurement.parse import membership
from anatomica.measurement.placing import Resolved, Wanted, resolve
from anatomica.prior.autoencoder import Autoencoder
from anatomica.prior.edm import EDM, LatentScaler, build_denoiser
from anatomica.prior.latent_gaussian import LatentGaussian
from anatomica.prior.zoo import Model
from anatomica.spec.quantities import BettiPrior
from anatomica.spec.spec import Weights
from anatomica.spec.yaml import parse_spec
from tiny_prior import TINY

CLEAN = torch.zeros(1)


@pytest.fixture(scope="module", params=[1, 2], ids=["paper's field", "split field"])
def model(request: pytest.FixtureRequest) -> Model:
    config = replace(TINY.autoencoder, field=replace(TINY.autoencoder.field, split=request.param))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        autoencoder = Autoencoder(4, config)
        denoiser = build_denoiser(3, 4, TINY.unet, TINY.edm)
    # An untrained field answers the same everywhere; a steeper last layer makes it a varied anatomy.
    last = autoencoder.field.mlp[-1]
    assert isinstance(last, torch.nn.Linear)
    with torch.no_grad():
        last.weight.mul_(6)
    scaler = LatentScaler(3).fit(3 * torch.randn(8, 3, 4, 4, 4, generator=torch.Generator().manual_seed(1)))
    about = anatomy("coronary")
    for module in (autoencoder, denoiser, scaler):
        module.eval().requires_grad_(False)
    return Model(about, 16, autoencoder, denoiser, scaler, TINY.sampling, {}, "0" * 16)


def latent(batch: int = 2, seed: int = 0) -> torch.Tensor:
    return torch.randn(batch, 3, 4, 4, 4, generator=torch.Generator().manual_seed(seed))


def spec(
    target: str,
    domain: str = "{family: global, grid: [8, 8, 8]}",
    tolerance: str = "{}",
    structure: str = "Lu",
):
    return parse_spec(
        f"name: x\nanatomy: coronary\nconstraints:\n- name: lumen\n  structure: [{structure}]\n  match: []\n"
        f"  domain: {domain}\n  target: {target}\n  tolerance: {tolerance}\n  mass_threshold: 1.0e-9\n"
    )


def domains() -> Domains:
    """The whole cube."""
    one = torch.ones(1, 3)
    return Domains(torch.eye(3)[None], one, one / 2, (4, 4, 4), torch.ones(1, dtype=torch.bool), ("",))


def resolved(model: Model, wanted) -> tuple:
    return resolve(wanted, Frame.model(anatomy("coronary"), model.n))


def test_the_update_equation_on_a_linear_denoiser() -> None:
    """D(z) = z / 2 and L = |z_0|^2 / 2, so grad_z L = D(z) / 2 = z / 4 and D_w = z / 2 - sigma^2 z / 4."""
    z, sigma = latent(), torch.tensor([0.5, 2.0])
    potential = lambda z_0: z_0.flatten(1).square().sum(1) / 2  # noqa: E731
    D_w = guided(lambda z, sigma: z / 2, potential)
    expected = z / 2 - sigma.view(-1, 1, 1, 1, 1) ** 2 * z / 4
    torch.testing.assert_close(D_w(z, sigma), expected)


def test_geometric_potential_is_the_weighted_mean_square() -> None:
    m = Moments(torch.tensor([[0.2]]), torch.tensor([[[0.5, 0.5, 0.5]]]), torch.eye(3)[None, None] / 3)
    shape = torch.eye(3)[None] / 3
    shape[0, 0, 0] += 0.3
    wanted = Wanted(
        {"mass": torch.tensor([0.1]), "centroid": torch.tensor([[0.5, 0.5, 0.8]]), "shape": shape}
    )
    box = domains()
    weights = Weights(mass=2.0, centroid=3.0, covariance=5.0)
    expected = 2 * 0.1**2 + 3 * 0.3**2 / 3 + 5 * 0.3**2 / 9
    assert geometric_potential(m, box, wanted, weights, 0.01).item() == pytest.approx(expected, rel=1e-4)
    # Adaptive mass weighting: too little mass, and only the mass counts.
    assert geometric_potential(m, box, wanted, weights, 0.5).item() == pytest.approx(2 * 0.1**2, rel=1e-4)
    free = Wanted({})
    assert geometric_potential(m, box, free, weights, 0.01).item() == 0


def test_topological_potential_keeps_the_strongest_and_suppresses_the_rest() -> None:
    line = torch.tensor([0.0, 0.9, 0.2, 0.6, 0.0, 0.4, 0.0]).view(1, 1, 7, 1, 1)
    # Components: 0.9 (dies at the minimum 0), 0.6 (dies at 0.2), 0.4 (dies at 0).
    two = topological_potential(line, BettiPrior(b0=2))
    assert two.item() == pytest.approx(-(0.9**2) - 0.4**2 + 0.4**2, abs=1e-6)
    one = topological_potential(line, BettiPrior(b0=1))
    assert one.item() == pytest.approx(-(0.9**2) + 0.4**2 + 0.4**2, abs=1e-6)
    assert topological_potential(line, BettiPrior()).item() == 0


def test_potentials_pass_gradcheck(model: Model) -> None:
    S = torch.rand(
        1, 1, 4, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    (r,) = resolved(
        model,
        spec(
            "{mass: 0.3, centroid: [0.5, 0.4, 0.5], betti: {b0: 1, b1: 0}}",
            "{family: global, grid: [4, 4, 4]}",
        ),
    )
    assert torch.autograd.gradcheck(lambda S: composite_potential([S], [r]), (S,))


def test_l_and_v_are_one_switch(model: Model) -> None:
    constraints = resolved(
        model, spec("{mass: 0.3}", "{family: box, grid: [4, 5, 6], centre_mm: [0, 0, 0], size_mm: [8, 8, 8]}")
    )
    for variant in ("L", "V"):
        (S,) = parser(model, constraints, variant)(latent())
        assert S.shape == (2, 1, 4, 5, 6)
        assert 0 <= S.min() <= S.max() <= 1


EVERYTHING = "{mass: 0.9, centroid: [0.5, 0.4, 0.5], shape: [0.4, 0.3, 0.3, 0, 0, 0], spread_mm: 20}"


def test_the_jacobian_is_that_of_autograd(model: Model) -> None:
    z = latent(1)
    # Of the scarcer tissue there is so little that its domain is filled too.
    both = [resolved(model, spec(EVERYTHING, structure=tissue))[0] for tissue in ("Lu", "Ve")]
    r = min(both, key=lambda r: float(parser(model, [r], union="sum")(z)[0].mean()))
    now = Prediction.of(model, z)
    probe, filling = probes(now, r, Settings())
    J = jacobian(now, probe, r)[0]

    def mass(z: torch.Tensor) -> torch.Tensor:
        (S,) = parser(model, [r], union="sum")(z)
        return measure_moments(S, r.domains).mass.sum() / (0.02 * 0.9)

    def spread(z: torch.Tensor) -> torch.Tensor:
        (S,) = parser(model, [r], union="sum")(z)
        return measure_moments(S, r.domains).size.sum() / (20 / model.edge_mm) ** 2 / 2 / 0.02

    assert probe.rho.shape == (1, 11)
    for row, of in ((J[0], mass), (J[-1], spread)):
        exact = torch.autograd.functional.jacobian(of, z).flatten()
        assert (row - exact).norm() < 0.02 * exact.norm()

    def filled(z: torch.Tensor) -> torch.Tensor:
        logits = model.autoencoder.field(model.scaler.restore(z), filling.points)
        S = membership(logits, r.selection, "sum", EMPTY_TEMPERATURE)
        return S.mean() / FILLING_TOLERANCE

    (row,) = jacobian(now, filling, r)[0]
    exact = torch.autograd.functional.jacobian(filled, z).flatten()
    assert (row - exact).norm() < 1e-3 * exact.norm()


def test_overlapping_domains_share_a_jacobian_and_no_slopes(model: Model) -> None:
    """Two boxes in one probe: the rows of each are those that it has alone, soft and as certified."""
    boxes = [
        f"{{family: box, grid: [6, 6, 6], centre_mm: [{x}, 0, 0], size_mm: [8, 9, 10]}}" for x in (-1, 2)
    ]
    # Of these two tissues an untrained label map has enough, whichever field wrote it.
    alone = [resolved(model, spec(EVERYTHING, box, structure="Lu, Ve"))[0] for box in boxes]
    (a, b), (v, w) = ([r.domains for r in alone], [r.wanted for r in alone])
    both = replace(
        alone[0],
        domains=Domains(
            R=torch.cat([a.R, b.R]),
            s=torch.cat([a.s, b.s]),
            t=torch.cat([a.t, b.t]),
            grid=a.grid,
            valid=torch.cat([a.valid, b.valid]),
            reasons=a.reasons + b.reasons,
        ),
        wanted=Wanted({key: torch.cat([v.values[key], w.values[key]]) for key in v.values}),
    )
    now = Prediction.of(model, latent(1))

    def soft(r: Resolved) -> Probe:
        return probes(now, r, Settings())[0]

    def hard(r: Resolved) -> Probe:
        return certified_probes(now, r, certified_voxels(model, r, model.n), Settings())[0]

    for probe in (soft, hard):
        J = jacobian(now, probe(both), both)
        rows = torch.cat([jacobian(now, probe(r), r) for r in alone], dim=1)
        assert J[0].any(dim=1).sum() == 22
        assert torch.allclose(J, rows, rtol=1e-4, atol=1e-5 * float(rows.abs().max()))


def test_an_empty_domain_is_filled_around_its_centroid(model: Model) -> None:
    """A box without the tissue has no slope; the probe of its points brings the tissue there."""
    box = "{family: box, grid: [6, 6, 6], centre_mm: [0, 0, 0], size_mm: [3, 3, 3]}"
    (r,) = resolved(model, spec("{mass: 0.004, centroid: [0.5, 0.5, 0.5]}", domain=box))
    z = latent(1)

    def mass(z: torch.Tensor) -> float:
        (S,) = parser(model, [r], union="sum")(z)
        return measure_moments(S, r.domains).mass.item()

    random = torch.Generator().manual_seed(0)
    for _ in range(200):  # away from the tissue first
        points = 0.5 + 0.25 * (torch.rand(1, 64, 3, generator=random) - 0.5)
        at = z.clone().requires_grad_()
        field = model.autoencoder.field(model.scaler.restore(at), points)
        (slope,) = torch.autograd.grad(torch.softmax(field, -1)[..., list(r.selection)].sum(), at)
        z = z - 0.5 * slope / slope.norm().clamp_min(1e-6)
    assert mass(z) < EMPTY * 0.004
    for _ in range(60):
        z = z + newton_step(model, [r], z, CLEAN, Settings(radius=0.1))
    assert mass(z) == pytest.approx(0.004, rel=0.1)


@pytest.mark.parametrize("with_centroid", [False, True])
def test_newton_steps_reach_a_near_target(model: Model, with_centroid: bool) -> None:
    """A fifth more mass than the latent has, and its centroid moved by a per cent of the cube."""
    z = latent(1)
    (free,) = resolved(model, spec("{mass: 1.0}"))
    (S,) = parser(model, [free], union="sum")(z)
    start = measure_moments(S, free.domains)
    place = [round(x + 0.01, 5) for x in start.centroid[0, 0].tolist()]
    target = f"{{mass: {1.2 * start.mass.item()}" + (f", centroid: {place}}}" if with_centroid else "}")
    constraints = resolved(model, spec(target, tolerance="{centroid_mm: 0.1}"))
    settings = Settings(radius=0.2)

    def worst(z: torch.Tensor) -> float:
        now = Prediction.of(model, z)
        return max(p.rho.abs().max().item() for p in probes(now, constraints[0], Settings()))

    before = worst(z)
    for _ in range(40):
        z = z + newton_step(model, constraints, z, CLEAN, settings)
    assert before > 5
    assert worst(z) < 1


def test_conflicting_and_impossible_targets_stay_finite(model: Model) -> None:
    both = parse_spec(
        "name: x\nanatomy: coronary\nconstraints:\n"
        "- {name: a, structure: [Lu], match: [], domain: {family: global, grid: [8, 8, 8]},"
        " target: {mass: 0.1}}\n"
        "- {name: b, structure: [Lu], match: [], domain: {family: global, grid: [8, 8, 8]},"
        " target: {mass: 1.0}}\n"
        "- {name: c, structure: [Ve], match: [], domain: {family: global, grid: [8, 8, 8]},"
        " target: {centroid: [1.0, 0.5, 0.5], betti: {b0: 9, b1: 0, b2: 0}}}\n"
    )
    constraints = resolved(model, both)
    settings = Settings(radius=0.1)
    z = latent()
    correct = gauss_newton(model, constraints, settings)
    D_w = corrected(lambda z, sigma: z, correct)
    for sigma, longest in ((1.0, settings.reach), (0.0, settings.radius)):
        for _ in range(5):
            moved = D_w(z, torch.full((2,), sigma))
            assert torch.isfinite(moved).all()
            assert (moved - z).square().mean().sqrt() <= longest * 1.01
            z = moved


def test_steps_are_no_longer_than_their_noise_allows(model: Model) -> None:
    """Each sample by its own noise: reach times sigma, and the radius without noise."""
    constraints = resolved(model, spec("{mass: 0.3}"))
    sigma = torch.tensor([0.0, 3.0])
    short = newton_step(model, constraints, latent(), sigma, Settings(radius=0.01, reach=0.02))
    rms = short.square().mean(dim=(1, 2, 3, 4)).sqrt()
    assert rms.tolist() == pytest.approx([0.01, 0.06], rel=1e-3)


def test_steps_are_taken_in_the_metric_of_the_prior(model: Model) -> None:
    """With one component whose variance is far above the rest's, what a residual needs goes along it.

    The step still removes the residual to first order: J dz = -rho, whatever the metric, without damping.
    """
    constraints = resolved(model, spec("{mass: 0.3}"))
    z, free = latent(), Settings(radius=1e9, reach=1e9, damping=0.0)
    size = z[0].numel()
    plain = newton_step(model, constraints, z, torch.zeros(2), free).flatten(1)
    gaussian = LatentGaussian(1, size)
    direction = torch.nn.functional.normalize(
        torch.randn(size, generator=torch.Generator().manual_seed(3)), dim=0
    )
    gaussian.basis.copy_(direction[None])
    gaussian.variance.fill_(1e4)
    gaussian.rest.fill_(1e-4)
    known = EDM(model.denoiser.network, model.denoiser.config, gaussian)
    step = newton_step(replace(model, denoiser=known), constraints, z, torch.zeros(2), free).flatten(1)
    along = (step @ direction).abs() / step.norm(dim=1)
    assert (along > 0.99).all()
    assert ((plain @ direction).abs() / plain.norm(dim=1) < 0.5).all()
    # plain is J^T times a number: its product with a step is the change of the residual, up to that number.
    change, wanted = (plain * step).sum(dim=1), plain.square().sum(dim=1)
    assert torch.allclose(change, wanted, rtol=1e-3)


def test_shape_and_spread_are_asked_of_a_sharp_prediction_alone(model: Model) -> None:
    """In noise a constraint on them does nothing, beside others as alone; without noise it does."""
    second = "shape: [0.5, 0.3, 0.2, 0, 0, 0], spread_mm: 3.0"
    z = latent()

    def moved(target: str, sigma: float) -> torch.Tensor:
        return gauss_newton(model, resolved(model, spec(target)))(z, torch.full((2,), sigma)) - z

    assert moved(f"{{{second}}}", 0.4).abs().max() == 0
    assert moved(f"{{{second}}}", 0.3).abs().max() > 0
    assert torch.equal(moved(f"{{mass: 0.3, {second}}}", 0.4), moved("{mass: 0.3}", 0.4))
    assert not torch.allclose(moved(f"{{mass: 0.3, {second}}}", 0.0), moved("{mass: 0.3}", 0.0))


@pytest.mark.parametrize(("target", "reach"), [("{mass: 0.9}", 1e-4), ("{betti: {b0: 9, b1: 0, b2: 0}}", 0)])
def test_moments_reach_further_in_noise_and_counts_do_not(model: Model, target: str, reach: float) -> None:
    """A radius that is next to nothing shows the limit: `reach` times sigma, none for what only counts."""
    guidance = Guidance(newton=Settings(radius=1e-6, reach=1e-4))
    z, sigma = latent(), torch.full((2,), 2.0)
    moved = guidance.denoiser(model, resolved(model, spec(target)))(z, sigma) - model.denoiser(z, sigma)
    rms = moved.square().mean(dim=(1, 2, 3, 4)).sqrt()
    assert rms.tolist() == pytest.approx([max(2 * reach, 1e-6)] * 2, rel=0.05)


def test_a_step_is_no_longer_than_the_radius(model: Model) -> None:
    constraints = resolved(model, spec("{mass: 0.9}"))
    step = newton_step(model, constraints, latent(), torch.zeros(2), Settings(radius=0.01))
    rms = step.flatten(1).square().mean(1).sqrt()
    assert all(math.isclose(x, 0.01, rel_tol=1e-3) or x < 0.01 for x in rms.tolist())
