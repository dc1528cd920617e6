# SPDX-License-Identifier: Apache-2.0
"""The transducer's loss against a sum over every path, and its gradients against finite differences."""

from __future__ import annotations

from itertools import combinations

import pytest
import torch
from scripts.training.rnnt_loss import joint_loss, lattice, transducer_loss


def by_paths(logits: torch.Tensor, labels: list[int]) -> torch.Tensor:
    """Loss of one string, (T, U + 1, V) logits, path by path."""
    logs = logits.log_softmax(-1)
    steps, tokens = logs.shape[0], logs.shape[1] - 1
    paths = []
    for emitting in combinations(range(steps - 1 + tokens), tokens):
        t, u, path = 0, 0, logs.new_zeros(())
        for edge in range(steps - 1 + tokens):
            if edge in emitting:
                path = path + logs[t, u, labels[u]]
                u += 1
            else:
                path = path + logs[t, u, -1]
                t += 1
        paths.append(path + logs[t, u, -1])
    return -torch.stack(paths).logsumexp(0)


class Case:
    """A batch of random sizes in float64; the first string fills the lattice, one has no tokens and one step."""

    def __init__(self, seed: int) -> None:
        torch.manual_seed(seed)
        self.longest, self.most, self.classes, self.joint = (int(n) for n in torch.randint(1, 5, (4,)) + 1)
        more = 3
        self.steps = torch.cat([torch.tensor([self.longest, 1]), torch.randint(1, self.longest + 1, (more,))])
        self.tokens = torch.cat([torch.tensor([self.most, 0]), torch.randint(0, self.most + 1, (more,))])
        batch = more + 2
        self.labels = torch.randint(0, self.classes - 1, (batch, self.most))
        shapes = (
            (batch, self.longest, self.joint),
            (batch, self.most + 1, self.joint),
            (self.classes, self.joint),
            (self.classes,),
        )
        self.inputs = [2.0 * torch.randn(shape, dtype=torch.float64, requires_grad=False) for shape in shapes]
        for tensor in self.inputs:
            tensor.requires_grad_()

    def logits(self) -> torch.Tensor:
        enc, pred, weight, bias = self.inputs
        return torch.relu(enc[:, :, None] + pred[:, None]) @ weight.t() + bias

    def expected(self, logits: torch.Tensor) -> torch.Tensor:
        """Loss of each string by its paths."""
        pairs = zip(self.steps.tolist(), self.tokens.tolist(), strict=True)
        return torch.stack(
            [
                by_paths(logits[row, :steps, : tokens + 1], self.labels[row].tolist())
                for row, (steps, tokens) in enumerate(pairs)
            ]
        )


def test_the_loss_is_the_sum_over_every_path_and_so_is_its_gradient(seed):
    case = Case(seed)
    logits = case.logits().detach().requires_grad_()
    found = transducer_loss(logits, case.labels, case.steps, case.tokens)
    expected = case.expected(logits)
    torch.testing.assert_close(found, expected)
    weights = torch.randn(len(found), dtype=torch.float64)
    for loss in (found, expected):
        (loss * weights).sum().backward()
        loss.gradient, logits.grad = logits.grad, None
    torch.testing.assert_close(found.gradient, expected.gradient)


def test_gradients_agree_with_finite_differences(seed):
    case = Case(seed)
    logits = case.logits().detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: transducer_loss(x, case.labels, case.steps, case.tokens), logits)


def test_the_joint_s_own_loss_is_that_of_its_logits(seed):
    case = Case(seed)
    transducer_loss(case.logits(), case.labels, case.steps, case.tokens).sum().backward()
    expected = [tensor.grad for tensor in case.inputs]
    for tensor in case.inputs:
        tensor.grad = None
    loss = joint_loss(*case.inputs, case.labels, case.steps, case.tokens, least=-1.0)
    torch.testing.assert_close(loss, case.expected(case.logits()).sum())
    (3.0 * loss).backward()
    for tensor, gradient in zip(case.inputs, expected, strict=True):
        torch.testing.assert_close(tensor.grad, 3.0 * gradient)


def test_single_precision_gives_the_loss_of_long_strings():
    """Probabilities far below what a float32 holds: only logarithms can be summed."""
    torch.manual_seed(3)
    steps, tokens, classes = 120, 20, 256
    logits = 4.0 * torch.randn((1, steps, tokens + 1, classes), dtype=torch.float64)
    arguments = (torch.randint(0, classes - 1, (1, tokens)), torch.tensor([steps]), torch.tensor([tokens]))
    double = transducer_loss(logits, *arguments)
    single = transducer_loss(logits.float(), *arguments)
    assert double.item() > 500
    assert single.item() == pytest.approx(double.item(), rel=1e-5)


def test_shares_of_the_paths_add_up(seed):
    """Every path leaves each of its steps by one blank, and gives out each of its tokens once."""
    case = Case(seed)
    logs = case.logits().detach().log_softmax(-1)
    index = torch.cat([case.labels, case.labels[:, :1]], 1)[:, None, :, None].expand(-1, case.longest, -1, -1)
    token = logs.gather(-1, index).squeeze(-1)
    _, by_blank, by_token = lattice(logs[..., -1], token, case.steps, case.tokens)
    inside_time = (torch.arange(case.longest) < case.steps[:, None]).double()
    inside_tokens = (torch.arange(case.most + 1) < case.tokens[:, None]).double()
    torch.testing.assert_close(by_blank.sum(2), inside_time)
    torch.testing.assert_close(by_token.sum(1), inside_tokens)


def test_nodes_that_no_path_to_speak_of_passes_change_the_gradient_by_less_than_their_share(seed):
    case = Case(seed)
    least = 1e-2
    gradients = []
    for threshold in (-1.0, least):
        joint_loss(*case.inputs, case.labels, case.steps, case.tokens, threshold).backward()
        gradients.append(case.inputs[3].grad.clone())
        case.inputs[3].grad = None
    # A node left out takes at most its share from each class's gradient.
    nodes = int((case.steps * (case.tokens + 1)).sum())
    assert float((gradients[0] - gradients[1]).abs().max()) <= least * nodes
