"""What stands first: the definition of what was named, wherever its language puts it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from code_intel_server.index.code_index import CodeIndex
from code_intel_server.index.values import ChromaMode, ChromaSettings, IndexSettings
from tests.index.builders import make_index, write_files

OFF = IndexSettings(chroma=ChromaSettings(mode=ChromaMode.OFF))

Ask = Callable[[dict[str, str], str], list[str]]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """The places that answer a question about these files, as `path symbol`."""
    opened: list[CodeIndex] = []

    def answer(files: dict[str, str], question: str) -> list[str]:
        write_files(tmp_path, files)
        index = make_index(tmp_path, OFF)
        opened.append(index)
        index.sync()
        return [f"{hit.path} {hit.symbol}" for hit in index.search(question).hits]

    yield answer
    for index in opened:
        index.close()


def test_what_a_file_that_re_exports_defines_itself_is_not_lowered(ask: Ask) -> None:
    trait = "pub mod text;\n\n/// How the values of a map are written.\npub trait Writer {\n    fn write(&self);\n}\n"
    other = "/// How the values of a list are kept.\npub fn keep(values: List) {\n    values.keep();\n}\n"
    found = ask({"core/mod.rs": trait, "core/list.rs": other}, "how are values written")
    assert found[0] == "core/mod.rs Writer"


def test_a_re_export_comes_after_the_definition(ask: Ask) -> None:
    exports = 'from engine.core import Engine\n\n__all__ = ["Engine"]\n'
    core = "class Engine:\n    def start(self):\n        return 1\n"
    found = ask({"engine/__init__.py": exports, "engine/core.py": core}, "Engine")
    assert found[0] == "engine/core.py Engine"


def test_a_module_is_found_by_the_last_part_of_its_name(ask: Ask) -> None:
    functions = "".join(
        f"  def put_{n}(state, value) do\n    Map.put(state, {n}, value)\n  end\n\n" for n in range(150)
    )
    module = f"defmodule Plug.Conn do\n  @moduledoc false\n\n{functions}end\n"
    other = "defmodule Plug.Test do\n  @doc false\n  def conn(method, conn) do\n    conn\n  end\nend\n"
    found = ask({"lib/plug/requests.ex": module, "lib/plug/conn/test.ex": other}, "Conn")
    assert found[0] == "lib/plug/requests.ex Plug.Conn"


def test_what_every_file_opens_is_defined_in_none_of_them(ask: Ask) -> None:
    extras = {
        f"contrib/extra_{n}.rb": f"module Sinatra\n  module Extra{n}\n    def extra_{n}\n      {n}\n    end\n  end\nend\n"
        for n in range(8)
    }
    base = "module Rack\n  # The core.\n  def answer(request)\n    routes.find(request)\n  end\nend\n"
    found = ask({**extras, "lib/base.rb": base}, "how the Sinatra core answers")
    assert found[0].startswith("lib/base.rb")


def test_a_qualified_name_is_the_one_that_stands_right_there(ask: Ask) -> None:
    methods = "".join(f"    def help_{n}(value)\n      render value, {n}\n    end\n\n" for n in range(150))
    wanted = f"module Sinatra\n  class BadRequest < TypeError\n  end\n\n  module Helpers\n{methods}  end\nend\n"
    other = "module Sinatra\n  module RespondWith\n    module Helpers\n      def respond\n        1\n      end\n    end\n  end\nend\n"
    found = ask({"lib/sinatra/base.rb": wanted, "contrib/lib/sinatra/respond.rb": other}, "Sinatra::Helpers")
    assert found[0] == "lib/sinatra/base.rb Sinatra.Helpers"


def test_what_shares_a_chunk_with_its_neighbours_is_found_by_its_own_name(ask: Ask) -> None:
    """Small neighbours are one chunk, which is called by the first of them."""
    neighbours = "def a():\n    return 1\n\n\ndef b():\n    return 2\n\n\ndef unpack_label():\n    return read(3)\n"
    talk = "def total():\n    '''Sums what comes after a label that was unpacked.'''\n    return sum(unpacked, label)\n"
    found = ask({"one.py": neighbours, "two.py": talk}, "where is it that the label of a parcel is unpacked")
    assert found[0].startswith("one.py")
