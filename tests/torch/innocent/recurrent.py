"""LSTM and GRU over packed sequences, and a cell in a loop."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def train(device):
    torch.manual_seed(0)
    letters = nn.Embedding(20, 8).to(device)
    lstm = nn.LSTM(8, 12, num_layers=2, bidirectional=True, batch_first=True).to(device)
    gru = nn.GRU(24, 8, batch_first=True).to(device)
    cell = nn.GRUCell(8, 8).to(device)
    head = nn.Linear(8, 20).to(device)
    modules = nn.ModuleList([letters, lstm, gru, cell, head])
    optimizer = torch.optim.Adam(modules.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        lengths = torch.tensor([9, 6, 4])
        text = torch.randint(0, 20, (3, 9)).to(device)
        packed = pack_padded_sequence(letters(text), lengths, batch_first=True)
        output, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
        output, state = gru(output)
        state = state[0]
        for position in range(3):
            state = cell(output[:, position], state)
        loss = nn.functional.cross_entropy(head(output).flatten(0, 1), text.flatten())
        loss = loss + state.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


losses = train("cuda")
print("losses:", losses)
torch.testing.assert_close(losses, train("cpu"), rtol=1e-4, atol=1e-6)
