"""Paths written here are the paths that Hadoop's own `Path` class writes, and are read as it reads them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from pyspark_delta.storage.paths import encode_path, resolve_file, to_hadoop, to_uri

AT_ONCE = 100  # questions, which both pipes must hold
PROGRAM = """
import java.io.*;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.hadoop.fs.Path;

public class Paths {
  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "US-ASCII");
    for (String line; (line = in.readLine()) != null; ) {
      String[] parts = line.split(" ");
      String text = new String(HexFormat.of().parseHex(parts[1]), StandardCharsets.UTF_8);
      String answer = switch (parts[0]) {
        case "encode" -> new Path(text).toUri().toString();
        case "resolve" -> new Path(new Path("/table"), new Path(new URI(text))).toString();
        default -> new Path(text).toUri().getPath();
      };
      out.println(HexFormat.of().formatHex(answer.getBytes(StandardCharsets.UTF_8)));
    }
  }
}
"""


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Iterable[str]], list[str]]]:
    """Asks Hadoop's `Path` about texts, in one process of Java."""
    pyspark = pytest.importorskip("pyspark", reason="needs Hadoop's jars, which pyspark brings")
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not on the PATH; install Java 17 or newer")
    source = tmp_path_factory.mktemp("hadoop") / "Paths.java"
    source.write_text(PROGRAM)
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = [java, "-XX:TieredStopAtLevel=1", "-cp", str(jars), str(source)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        questions, answers = process.stdin, process.stdout

        def ask(question: str, texts: Iterable[str]) -> list[str]:
            found, remaining = [], iter(texts)
            while chunk := list(islice(remaining, AT_ONCE)):
                questions.write("".join(f"{question} {text.encode().hex()}\n" for text in chunk))
                questions.flush()
                lines = [answers.readline() for _ in chunk]
                assert all(line.endswith("\n") for line in lines), "Java ended; its error stands above"
                found += [bytes.fromhex(line).decode() for line in lines]
            return found

        yield ask


def test_every_character_is_written_as_hadoop_writes_it(hadoop) -> None:  # type: ignore[no-untyped-def]
    codes = [code for code in range(1, 0x3100) if chr(code) != "/"] + [0xE000, 0xFEFF, 0xFFFD, 0x1F600, 0x10FFFF]
    texts = [f"/dir/a{chr(code)}b" for code in codes]
    assert hadoop("encode", texts) == [encode_path(text) for text in texts]


def test_log_paths_are_read_as_hadoop_reads_them(hadoop) -> None:  # type: ignore[no-untyped-def]
    raw = [
        "part-0.parquet",
        "p=a%2520b/x",
        "_2=bar+%252521/part",
        "letter=%252F%252520%2525f/x",
        "special%20p@%23h",
        "a%3Ab/c",
        "%C3%BC/%E4%B8%AD",
        "ü/中",
        "a//b/./c",
        "/some/unqualified/with%20space/p@%23h",
        "p/10:30/x",
        encode_path("p=10:30/a:b"),
        encode_path("s3:x/y"),
    ]
    assert hadoop("resolve", raw) == [resolve_file("/table", text) for text in raw]
    absolute = ["file:/some/with%20space/p@%23h", "file:///x/y%25"]
    assert hadoop("resolve", absolute) == [f"file:{resolve_file('/table', text)}" for text in absolute]


def test_hadoop_takes_locations_literally(hadoop) -> None:  # type: ignore[no-untyped-def]
    locations = ["/a b/p=a%20b", "/ü/c:d", "/x/[y]{z}?*#"]
    assert hadoop("path", [to_hadoop(location) for location in locations]) == locations
    assert hadoop("encode", [to_hadoop("s3://b/k k%")]) == [to_uri("s3://b/k k%").replace("s3:", "s3a:")]
