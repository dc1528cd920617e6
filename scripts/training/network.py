# SPDX-License-Identifier: Apache-2.0
"""The RNN-T in PyTorch, its tensors named as in a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from gharial.checkpoint import ModelDims
from scripts.training.rnnt_loss import joint_loss

DEMO = ModelDims(
    features=240, hidden=64, pre_layers=2, post_layers=2, stack=2, pred_hidden=64, pred_layers=1, joint=64, classes=256
)
"""Sizes of demo-small: its weights fit the on-chip memory of an ECP5-85F."""


class _Lstm(nn.Module):  # type: ignore[misc]
    """An LSTM one name further down, as checkpoints have it."""

    def __init__(self, inputs: int, units: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, units, layers, dropout=dropout if layers > 1 else 0.0)
        for name, tensor in self.lstm.named_parameters():
            # A cell that forgets slowly at first is quicker to train (Gers and others, 2000).
            if name.startswith("bias"):
                nn.init.zeros_(tensor)
            if name.startswith("bias_ih"):
                with torch.no_grad():
                    tensor[units : 2 * units] = 1.0


class _Encoder(nn.Module):  # type: ignore[misc]
    def __init__(self, dims: ModelDims, dropout: float) -> None:
        super().__init__()
        self.pre_rnn = _Lstm(dims.features, dims.hidden, dims.pre_layers, dropout)
        self.post_rnn = _Lstm(dims.stack * dims.hidden, dims.hidden, dims.post_layers, dropout)


class _Prediction(nn.Module):  # type: ignore[misc]
    def __init__(self, dims: ModelDims, dropout: float) -> None:
        super().__init__()
        self.embed = nn.Embedding(dims.vocabulary, dims.pred_hidden)
        self.dec_rnn = _Lstm(dims.pred_hidden, dims.pred_hidden, dims.pred_layers, dropout)


class Network(nn.Module):  # type: ignore[misc]
    """The network; `state_dict` has the names and shapes of `dims.shapes()`.

    Args:
        dims: sizes.
        dropout: share of the values that are zeroed in training between layers and before joint_enc and joint_pred.
    """

    def __init__(self, dims: ModelDims = DEMO, dropout: float = 0.0) -> None:
        super().__init__()
        self.dims = dims
        self.encoder = _Encoder(dims, dropout)
        self.prediction = _Prediction(dims, dropout)
        self.joint_enc = nn.Linear(dims.hidden, dims.joint)
        self.joint_pred = nn.Linear(dims.pred_hidden, dims.joint)
        # Its third module is the output layer, hence the name joint_net.2; the ones before have no parameters.
        self.joint_net = nn.Sequential(nn.ReLU(), nn.Identity(), nn.Linear(dims.joint, dims.classes))
        self._dropout = nn.Dropout(dropout)

    def start_at(self, shares: Sequence[float]) -> None:
        """Let every output start at the logarithm of how often its class comes, which need then not be learnt first.

        Args:
            shares: of each class among a path's edges, above 0.
        """
        with torch.no_grad():
            self.joint_net[2].bias.copy_(torch.tensor(shares).log())

    def encode(self, features: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """joint_enc's outputs.

        Args:
            features: (T2, B, F), T2 a multiple of the stack factor; behind a string's end anything finite.
            lengths: (B,) int64, feature vectors of each string.

        Returns:
            (B, T2 / stack, J).
        """
        hidden, _ = self.encoder.pre_rnn.lstm(features)
        steps, batch, width = hidden.shape
        # A vector that is missing in a string's last step is zero after the first part too.
        present = torch.arange(steps)[:, None] < lengths[None, :]
        hidden = self._dropout(hidden * present[:, :, None])
        stack = self.dims.stack
        hidden = hidden.reshape(steps // stack, stack, batch, width).transpose(1, 2).reshape(steps // stack, batch, -1)
        hidden, _ = self.encoder.post_rnn.lstm(hidden)
        output: torch.Tensor = self.joint_enc(self._dropout(hidden)).transpose(0, 1)
        return output

    def predict(self, labels: torch.Tensor) -> torch.Tensor:
        """joint_pred's outputs before each token and after the last, (B, U + 1, J), for (B, U) labels."""
        embedded = self.prediction.embed(labels).transpose(0, 1)
        # The start of a sequence is a vector of zeros.
        embedded = torch.cat([embedded.new_zeros((1, *embedded.shape[1:])), embedded])
        hidden, _ = self.prediction.dec_rnn.lstm(embedded)
        output: torch.Tensor = self.joint_pred(self._dropout(hidden)).transpose(0, 1)
        return output

    def loss(
        self, features: torch.Tensor, lengths: torch.Tensor, labels: torch.Tensor, tokens: torch.Tensor
    ) -> torch.Tensor:
        """Sum of a batch's losses, ().

        Args:
            features: (T2, B, F).
            lengths: (B,) feature vectors of each string, 1 or more.
            labels: (B, U).
            tokens: (B,) labels of each string.
        """
        enc, pred = self.encode(features, lengths), self.predict(labels)
        output = self.joint_net[2]
        steps = -(-lengths // self.dims.stack)
        return joint_loss(enc.contiguous(), pred.contiguous(), output.weight, output.bias, labels, steps, tokens)

    @torch.inference_mode()  # type: ignore[untyped-decorator]
    def greedy(self, features: torch.Tensor, lengths: torch.Tensor, max_symbols: int = 30) -> list[list[int]]:
        """Token ids of each string of a batch by greedy decoding."""
        enc = self.encode(features, lengths)
        steps = -(-lengths // self.dims.stack)
        blank = self.dims.classes - 1
        batch = len(lengths)
        found: list[list[int]] = [[] for _ in range(batch)]
        hidden, state = self.prediction.dec_rnn.lstm(enc.new_zeros((1, batch, self.dims.pred_hidden)))
        pred = self.joint_pred(hidden[0])
        for step in range(enc.shape[1]):
            alive = step < steps
            for _ in range(max_symbols):
                best = self.joint_net(enc[:, step] + pred).argmax(-1)
                alive = alive & (best != blank)
                rows = alive.nonzero().squeeze(1)
                if len(rows) == 0:
                    break
                for row, token in zip(rows.tolist(), best[rows].tolist(), strict=True):
                    found[row].append(token)
                some = tuple(part[:, rows] for part in state)
                hidden, some = self.prediction.dec_rnn.lstm(self.prediction.embed(best[rows])[None], some)
                for part, new in zip(state, some, strict=True):
                    part[:, rows] = new
                pred[rows] = self.joint_pred(hidden[0])
        return found


def check_shapes(state: Mapping[str, torch.Tensor], dims: ModelDims) -> None:
    """Assert that a state dict is that of a checkpoint of these sizes."""
    assert {name: tuple(tensor.shape) for name, tensor in state.items()} == dims.shapes()
