"""Generates the protobuf modules ``kubedra.wire.generated`` from our .proto files.

The generated code embeds the oldest protobuf runtime it accepts, so the generator is pinned: grpcio-tools 1.76 emits
code for protobuf 6.31, which also loads under protobuf 7. Service stubs are not generated: ``wire/transport.py`` names
the methods itself, which keeps untyped code and grpc's version check out of every process.

``--check`` writes nothing and fails when the committed modules differ from what would be generated.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WIRE = ROOT / "src" / "kubedra" / "wire"


def generate(destination: Path) -> list[Path]:
    """Write one ``*_pb2.py`` per .proto file below ``destination`` and return their paths relative to it."""
    import grpc_tools
    from grpc_tools import protoc

    includes = Path(grpc_tools.__file__).parent / "_proto"
    sources = sorted((WIRE / "protos").glob("*.proto"))
    arguments = [
        "protoc",
        f"-Ikubedra/wire/generated={WIRE / 'protos'}",
        f"-I{includes}",
        f"--python_out={destination}",
        *(f"kubedra/wire/generated/{source.name}" for source in sources),
    ]
    if protoc.main(arguments) != 0:
        raise SystemExit("protoc refused the .proto files; its message is above")
    return [Path("kubedra") / "wire" / "generated" / f"{source.stem}_pb2.py" for source in sources]


def main() -> int:
    """Generate, or compare with --check; the exit status is 1 when something differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--check", action="store_true", help="compare with the committed files, write nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as folder:
        stale = []
        for relative in generate(Path(folder)):
            fresh = (Path(folder) / relative).read_bytes()
            committed = ROOT / "src" / relative
            if not committed.exists() or committed.read_bytes() != fresh:
                stale.append(committed.relative_to(ROOT))
                if not check:
                    committed.write_bytes(fresh)
    if check and stale:
        print("not up to date (run tools/generate_wire.py):", *stale, sep="\n  ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
