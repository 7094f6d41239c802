"""``python -m bench_mtl``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python has put the current folder first, of which other processes would import a sitecustomize.py.
    if not sys.flags.safe_path and Path(sys.path[0]).resolve() == Path.cwd() != Path(__file__).resolve().parents[1]:
        del sys.path[0]
    from bench_mtl.cli import main

    main()
