# SPDX-License-Identifier: Apache-2.0
"""The transducer's loss (Graves, "Sequence Transduction with Recurrent Neural Networks", 2012) and its gradient.

The lattice of a string has a node for each encoder step t and number of tokens u given out so far. From (t, u) blank
leads to (t + 1, u), the next token to (t, u + 1); the loss is minus the logarithm of the summed probability of all
paths from (0, 0) through the blank at (T - 1, U). Forward and backward variables are computed in logarithms, all nodes
with the same t + u at once: such a node depends on none of its own diagonal, so a lattice takes T + U steps of a
vector and not T U steps of a number.

`joint_loss` is what training uses: it holds the joint network's output layer too, whose logits (a value for each node
and class) are the one large array of a transducer. They are computed in pieces, once for the probabilities of blank
and the next token, and once more for the gradient where a path of some probability passes.
"""

from __future__ import annotations

from typing import Any

import torch

_ROWS = 2048
"""Nodes in a piece: their logits of 256 classes stay in a processor's cache."""

LEAST_SHARE = 1e-5
"""Nodes that a smaller share of the paths passes are left out of `joint_loss`'s gradient."""


def lattice(
    blank: torch.Tensor, token: torch.Tensor, steps: torch.Tensor, tokens: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Log-probability of each string, and how much of it passes along each edge.

    Args:
        blank: (B, T, U + 1) log-probability of blank at each node.
        token: (B, T, U + 1) that of the string's next token; the last column is not used.
        steps: (B,) int64, encoder steps of each string, 1 to T.
        tokens: (B,) int64, tokens of each string, 0 to U.

    Returns:
        (B,) log-probabilities; (B, T, U + 1) share of the paths that leave a node by blank, and by the next token, 0
        outside of a string's own lattice. The shares are the gradient of the sum of the log-probabilities with respect
        to `blank` and `token` (Graves' equation 20).
    """
    batch, longest, width = blank.shape
    never = float("-inf")
    row = torch.arange(width, device=blank.device)
    time = torch.arange(longest, device=blank.device)
    inside = (time[None, :, None] < steps[:, None, None]) & (row[None, None, :] <= tokens[:, None, None])
    blank = blank.masked_fill(~inside, never)
    token = token.masked_fill(~(inside & (row[None, None, :] < tokens[:, None, None])), never)
    # Skewed: entry (n, u) is the node (n - u, u). A blank leads to (n + 1, u), a token to (n + 1, u + 1).
    diagonals = longest + width
    at = torch.arange(diagonals, device=blank.device)[:, None] - row[None, :]
    valid = (at >= 0) & (at < longest)
    at = at.clamp(0, longest - 1)
    skew_blank = blank[:, at, row].masked_fill(~valid, never).transpose(0, 1).contiguous()
    skew_token = token[:, at, row].masked_fill(~valid, never).transpose(0, 1).contiguous()

    alpha = blank.new_full((diagonals, batch, width), never)
    alpha[0, :, 0] = 0.0
    for n in range(1, diagonals):
        stay = alpha[n - 1] + skew_blank[n - 1]
        move = alpha[n - 1, :, :-1] + skew_token[n - 1, :, :-1]
        alpha[n] = stay
        torch.logaddexp(stay[:, 1:], move, out=alpha[n, :, 1:])

    # The end is one more node, (T, U), reached by the last blank.
    final = steps + tokens
    ends = torch.nn.functional.one_hot(tokens, width).bool()
    beta = blank.new_full((diagonals, batch, width), never)
    for n in range(diagonals - 1, -1, -1):
        if n + 1 < diagonals:
            beta[n] = beta[n + 1] + skew_blank[n]
            move = beta[n + 1, :, 1:] + skew_token[n, :, :-1]
            torch.logaddexp(beta[n, :, :-1].clone(), move, out=beta[n, :, :-1])
        beta[n].masked_fill_(ends & (final == n)[:, None], 0.0)
    total = beta[0, :, 0].clone()

    ahead = torch.cat([beta[1:], beta.new_full((1, batch, width), never)])
    by_blank = (alpha + skew_blank + ahead - total[None, :, None]).exp()
    by_token = torch.zeros_like(by_blank)
    by_token[:, :, :-1] = (alpha[:, :, :-1] + skew_token[:, :, :-1] + ahead[:, :, 1:] - total[None, :, None]).exp()
    # Back from diagonals to (t, u).
    there = time[:, None] + row[None, :]
    back = (there[None], torch.arange(batch, device=blank.device)[:, None, None], row[None, None, :])
    return total, by_blank[back], by_token[back]


class _Lattice(torch.autograd.Function):  # type: ignore[misc]
    """`lattice` with its gradient."""

    @staticmethod
    def forward(ctx: Any, blank: Any, token: Any, steps: Any, tokens: Any) -> Any:
        total, by_blank, by_token = lattice(blank, token, steps, tokens)
        ctx.save_for_backward(by_blank, by_token)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        by_blank, by_token = ctx.saved_tensors
        scale = gradient[:, None, None]
        return scale * by_blank, scale * by_token, None, None


def transducer_loss(
    logits: torch.Tensor, labels: torch.Tensor, steps: torch.Tensor, tokens: torch.Tensor
) -> torch.Tensor:
    """Loss of each string from the logits of every node; blank is the last class.

    Args:
        logits: (B, T, U + 1, V).
        labels: (B, U) int64, what follows a string's own tokens is not looked at but must be a class.
        steps: (B,) int64, encoder steps of each string, 1 to T.
        tokens: (B,) int64, tokens of each string, 0 to U.

    Returns:
        (B,) minus log-probability, differentiable by `logits`.
    """
    logs = logits.log_softmax(-1)
    index = torch.cat([labels, labels.new_zeros((len(labels), 1))], 1)[:, None, :, None]
    token = logs.gather(-1, index.expand(-1, logs.shape[1], -1, -1)).squeeze(-1)
    return -_Lattice.apply(logs[..., -1], token, steps, tokens)


class _JointLoss(torch.autograd.Function):  # type: ignore[misc]
    """`joint_loss` of a batch: the gradient is computed along with the loss."""

    @staticmethod
    def forward(
        ctx: Any, enc: Any, pred: Any, weight: Any, bias: Any, labels: Any, steps: Any, tokens: Any, least: float
    ) -> Any:
        batch, longest, width = enc.shape[0], enc.shape[1], pred.shape[1]
        classes = len(bias)
        row = torch.arange(width)
        inside = (torch.arange(longest)[None, :, None] < steps[:, None, None]) & (row <= tokens[:, None, None])
        b, t, u = inside.nonzero(as_tuple=True)
        following = torch.cat([labels, labels.new_zeros((batch, 1))], 1)[b, u]
        blank, token = enc.new_empty(len(b)), enc.new_empty(len(b))
        for start in range(0, len(b), _ROWS):
            some = slice(start, start + _ROWS)
            hidden = torch.relu(enc[b[some], t[some]] + pred[b[some], u[some]])
            logits = torch.addmm(bias, hidden, weight.t())
            norm = logits.logsumexp(-1)
            blank[some] = logits[:, -1] - norm
            token[some] = logits.gather(1, following[some, None]).squeeze(1) - norm
        grids = [enc.new_zeros((batch, longest, width)) for _ in range(2)]
        grids[0][inside], grids[1][inside] = blank, token
        total, by_blank, by_token = lattice(grids[0], grids[1], steps, tokens)

        by_blank, by_token = by_blank[inside], by_token[inside]
        kept = (by_blank + by_token > least).nonzero().squeeze(1)
        b, t, u, following = b[kept], t[kept], u[kept], following[kept]
        by_blank, by_token = by_blank[kept], by_token[kept]
        grad_enc, grad_pred = torch.zeros_like(enc), torch.zeros_like(pred)
        grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        for start in range(0, len(b), _ROWS):
            some = slice(start, start + _ROWS)
            where_enc, where_pred = b[some] * longest + t[some], b[some] * width + u[some]
            hidden = torch.relu(enc[b[some], t[some]] + pred[b[some], u[some]])
            grad = torch.addmm(bias, hidden, weight.t()).softmax(-1)
            grad *= (by_blank[some] + by_token[some])[:, None]
            grad[:, classes - 1] -= by_blank[some]
            grad.scatter_add_(1, following[some, None], -by_token[some, None])
            grad_weight += grad.t() @ hidden
            grad_bias += grad.sum(0)
            grad_hidden = (grad @ weight).masked_fill_(hidden <= 0, 0.0)
            grad_enc.view(batch * longest, -1).index_add_(0, where_enc, grad_hidden)
            grad_pred.view(batch * width, -1).index_add_(0, where_pred, grad_hidden)
        ctx.save_for_backward(grad_enc, grad_pred, grad_weight, grad_bias)
        return -total.sum()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return (*(gradient * part for part in ctx.saved_tensors), None, None, None, None)


def joint_loss(
    enc: torch.Tensor,
    pred: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    labels: torch.Tensor,
    steps: torch.Tensor,
    tokens: torch.Tensor,
    least: float = LEAST_SHARE,
) -> torch.Tensor:
    """Sum of the losses of a batch, from the joint network's inputs; blank is the last class.

    Args:
        enc: (B, T, J) joint_enc's outputs.
        pred: (B, U + 1, J) joint_pred's outputs before each token and after the last.
        weight: (V, J) of the output layer.
        bias: (V,).
        labels: (B, U) int64, what follows a string's own tokens is not looked at but must be a class.
        steps: (B,) int64, encoder steps of each string, 1 to T.
        tokens: (B,) int64, tokens of each string, 0 to U.
        least: nodes that no larger share of the paths passes are left out of the gradient; below 0 for all.

    Returns:
        () minus log-probability, differentiable by the first four.
    """
    loss: torch.Tensor = _JointLoss.apply(enc, pred, weight, bias, labels, steps, tokens, least)
    return loss
