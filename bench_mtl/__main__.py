"""``python -m bench_mtl``."""

from bench_mtl.cli import main

if __name__ == "__main__":
    main()
