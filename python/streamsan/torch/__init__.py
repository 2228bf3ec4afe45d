"""The torch layer: what PyTorch does, told to the recorder, and computed where there is no GPU."""
