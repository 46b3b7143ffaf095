"""Dense layers in training."""

import torch
import torch.nn.functional as F

from rejoinder.encoders.nn.layers import unit_rows


def test_unit_rows_have_the_gradient_of_torch():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(5, 7, generator=generator, requires_grad=True)
    weight = torch.randn(5, 7, generator=generator)
    present = torch.tensor([True, True, False, True, True])
    rows = unit_rows(x, present)
    (found,) = torch.autograd.grad((rows * weight).sum(), x)
    expected = F.normalize(x, dim=1) * present.unsqueeze(1)
    (gradient,) = torch.autograd.grad((expected * weight).sum(), x)
    torch.testing.assert_close(rows, expected)
    torch.testing.assert_close(found, gradient)
    assert not found[2].any()


def test_a_row_of_zeros_stays_one_and_has_a_finite_gradient():
    x = torch.zeros(1, 3, requires_grad=True)
    rows = unit_rows(x, torch.tensor([True]))
    rows.sum().backward()
    assert not rows.any()
    assert torch.isfinite(x.grad).all()
