#!/usr/bin/env python3
"""tests/models/test_gemma4_e2b_text.py -- The decoder of a tiny E2B against transformers."""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
import gemma4

gemma4.text("e2b")
