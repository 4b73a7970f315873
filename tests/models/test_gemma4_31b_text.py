#!/usr/bin/env python3
"""tests/models/test_gemma4_31b_text.py -- The decoder of a tiny 31B against transformers."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import gemma4

gemma4.text("31b")
