#!/usr/bin/env python3
"""tests/models/test_gemma4_26b_a4b_text.py -- The decoder of a tiny 26B-A4B against transformers."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import gemma4

gemma4.text("26b-a4b")
