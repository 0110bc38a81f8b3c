"""What is about PyTorch is left out where there is none."""

from __future__ import annotations

import importlib.util

_torch = importlib.util.find_spec("torch")
# A folder of that name is no PyTorch.
if _torch is None or _torch.origin is None:
    collect_ignore_glob = ["*torch*"]
