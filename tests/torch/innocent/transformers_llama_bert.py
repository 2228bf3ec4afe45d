# @ packages: transformers
"""Llama and BERT of transformers, built from configurations, with padding."""

import torch
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM


def make(name):
    if name == "llama":
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=64,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=2,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=32,
            )
        )
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=64,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            max_position_embeddings=32,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            num_labels=3,
        )
    )


def train(device, name):
    torch.manual_seed(0)
    model = make(name).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(3):
        tokens = torch.randint(1, 64, (3, 12))
        mask = (torch.arange(12) < torch.tensor([[12], [7], [9]])).long()
        labels = tokens.masked_fill(mask == 0, -100) if name == "llama" else torch.tensor([0, 1, 2])
        batch = {"input_ids": tokens, "attention_mask": mask, "labels": labels}
        batch = {key: value.to(device) for key, value in batch.items()}
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


for name in ("llama", "bert"):
    losses = train("cuda", name)
    print(name, "losses:", losses)
    torch.testing.assert_close(losses, train("cpu", name), rtol=1e-4, atol=1e-6)
