"""Files in metres or micrometres are read in mm, as ITK does it."""

from pathlib import Path

import nibabel
import numpy as np
import pytest
import SimpleITK as sitk

from anatomica.anatomy.nifti import load


@pytest.mark.parametrize(
    ("unit", "per_mm"), [("meter", 1e-3), ("mm", 1.0), ("micron", 1e3), ("unknown", 1.0)]
)
def test_the_unit_of_the_header_is_read(unit: str, per_mm: float, tmp_path: Path) -> None:
    affine = np.diag([0.5, 0.5, 2.0, 1.0])
    affine[:3, 3] = (-10.0, 4.0, 30.0)
    affine[:3] *= per_mm
    image = nibabel.Nifti1Image(np.ones((4, 5, 6), np.uint8), affine)
    image.header.set_xyzt_units(unit)
    path = tmp_path / "a.nii.gz"
    nibabel.save(image, path)
    found = load(path)
    assert np.allclose(found.affine[:3, 3], (-10.0, 4.0, 30.0))
    assert np.allclose(found.spacing_mm, (0.5, 0.5, 2.0))
    assert np.allclose(found.spacing_mm, sitk.ReadImage(str(path)).GetSpacing())
