"""Converts values to objects of the JVM of a classic session, with one call for any number of rows.

The classes are internal to Spark, which may change them. Only the Catalyst scan uses this module; `scan.unavailable`
first tries whether they work.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pyspark.sql import SparkSession

from pyspark_delta.lru import LruCache
from pyspark_delta.schema.json import schema_to_json
from pyspark_delta.schema.types import StructType
from pyspark_delta.spark.conf.classes import java_name
from pyspark_delta.spark.frames.catalyst.sequences import wrapped

_LONGEST_TEXT = 2**31 - 1
_KEPT = 256
_PYTHON_UTILS = "org.apache.spark.api.python.PythonUtils"


class Jvm:
    """The virtual machine of one py4j gateway."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.root = gateway.jvm
        self._made: LruCache[Hashable, Any] = LruCache(_KEPT)
        self.byte_array_offset = int(self.root.org.apache.spark.unsafe.Platform.BYTE_ARRAY_OFFSET)
        self.nil = self.seq(())
        self.none = self.root.scala.Option.empty()
        self._mapper = self._make_mapper()
        self._directories = self._array_class("org.apache.spark.sql.execution.datasources.PartitionDirectory")
        self._rows = self._array_class("org.apache.spark.sql.catalyst.expressions.UnsafeRow")
        self._strings = self._array_class("java.lang.String")

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the object kept for a key; if there is none, keep what `make` returns. Objects must be immutable.

        Each access to an object of the JVM is a message and an answer, and planning a query takes hundreds of them.
        """
        return self._made.get_or_make(key, make)

    def type(self, name: str) -> Any:
        """Return a class as py4j represents it, to call its constructor and its static methods."""
        return self.once(("type", name), lambda: getattr(self.root, name))

    def static(self, owner: str, name: str) -> Any:
        """Return a static method of a class. To look it up in what `type` returns is a message each time."""
        return self.once(("static", owner, name), lambda: getattr(self.type(owner), name))

    def classic(self, name: str) -> Any:
        """Return a class of classic sessions, such as `Dataset`, as `type` does."""
        return self.type(java_name(name))

    def make(self, name: str, *arguments: Any) -> Any:
        """Return a new object of a class, made without the last arguments if the constructor takes fewer.

        New releases of Spark add fields to classes, most of them at the end.
        """
        return self.type(name)(*arguments[: self.arity(name)])

    def arity(self, name: str) -> int:
        """Return the number of parameters of the longest constructor of a class."""

        def count() -> int:
            return max(int(one.getParameterCount()) for one in self.load_class(name).getConstructors())

        found: int = self.once(("arity", name), count)
        return found

    def has_class(self, name: str) -> bool:
        """Return True if the JVM has a class."""

        def look_up() -> bool:
            try:
                self.load_class(name)
            except Exception:  # py4j and PySpark raise ClassNotFoundException as different classes
                return False
            return True

        found: bool = self.once(("has class", name), look_up)
        return found

    def parameter_count(self, owner: str, name: str) -> int:
        """Return the number of parameters of a public method, which must exist."""

        def count() -> int:
            methods = self.load_class(owner).getMethods()
            return max(int(one.getParameterCount()) for one in methods if str(one.getName()) == name)

        found: int = self.once(("parameters", owner, name), count)
        return found

    def has_method(self, owner: str, name: str) -> bool:
        """Return True if a class has a public method of a name."""

        def look_up() -> bool:
            return any(str(method.getName()) == name for method in self.load_class(owner).getMethods())

        found: bool = self.once(("has method", owner, name), look_up)
        return found

    def load_class(self, name: str) -> Any:
        """Return a class as a `java.lang.Class`."""
        return self.root.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)

    def _class_of(self, name: str) -> Any:
        """Return a class, or for a name that ends with `[]` the class of its arrays."""
        return self.once(
            ("class", name), lambda: self._array_class(name[:-2]) if name.endswith("[]") else self.load_class(name)
        )

    def module(self, name: str) -> Any:
        """Return the instance of a Scala object."""
        return self.once(("module", name), lambda: self.load_class(f"{name}$").getField("MODULE$").get(None))

    def seq(self, values: Iterable[Any]) -> Any:
        """Return a Scala sequence of JVM objects."""
        return self.static(_PYTHON_UTILS, "toSeq")(list(values))

    def map(self, values: Mapping[str, str]) -> Any:
        """Return a Scala map of strings."""
        key = ("map", tuple(sorted(values.items())))
        return self.once(key, lambda: self.type(_PYTHON_UTILS).toScalaMap(dict(values)))

    def struct_type(self, schema: StructType) -> Any:
        """Return a schema as Spark's `StructType`."""
        return self.data_type(schema_to_json(schema))

    def data_type(self, json: str) -> Any:
        """Return a type in JSON as Spark's `DataType`."""
        return self.once(("data type", json), lambda: self.type("org.apache.spark.sql.types.DataType").fromJson(json))

    def directories(self, json: str) -> Any:
        """Return a sequence of `PartitionDirectory` from the JSON form of its fields."""
        return self._read(json, self._directories)

    def rows(self, json: str) -> Any:
        """Return a sequence of `UnsafeRow` from the JSON form of its fields."""
        return self._read(json, self._rows)

    def strings(self, json: str) -> Any:
        """Return a JSON array of strings as a `String[]`."""
        return self._mapper.readValue(json, self._strings)

    def _read(self, json: str, array_class: Any) -> Any:
        array = self._mapper.readValue(json, array_class)
        return wrapped(self, array)

    def row_array(self, rows: Any) -> Any:
        """Return a Scala sequence of rows as an `InternalRow[]`."""
        name = "org.apache.spark.sql.catalyst.InternalRow"
        tag = self.once(("tag", name), lambda: self.root.scala.reflect.ClassTag.apply(self.load_class(name)))
        return rows.toArray(tag)

    def array(self, values: Sequence[Any], of: str = "java.lang.Object") -> Any:
        """Return a Java array of objects of the class `of`."""
        array = self.root.java.lang.reflect.Array.newInstance(self._class_of(of), len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array

    def field(self, owner: Any, name: str) -> Any:
        """Return a field of an object, which may be private or inherited, as a `java.lang.reflect.Field`.

        Raises AttributeError if the object has no such field.
        """
        kind = owner.getClass()
        while kind is not None:
            for field in kind.getDeclaredFields():
                if field.getName() == name:
                    field.setAccessible(True)
                    return field
            kind = kind.getSuperclass()
        raise AttributeError(f"{owner.getClass().getName()} has no field '{name}'")

    def _array_class(self, name: str) -> Any:
        return self.root.java.lang.reflect.Array.newInstance(self.load_class(name), 0).getClass()

    def _make_mapper(self) -> Any:
        """Return a mapper of Jackson that makes objects of Spark and Hadoop from JSON of their fields.

        `InternalRow` is abstract: it becomes `UnsafeRow`. A field declared as Object (the bytes of a row) carries its
        class in the JSON. The Scala module constructs case classes and sequences.
        """
        jackson = self.root.com.fasterxml.jackson
        limits = jackson.core.StreamReadConstraints.builder().maxStringLength(_LONGEST_TEXT).build()
        factory = jackson.core.JsonFactory.builder().streamReadConstraints(limits).build()
        mapper = jackson.databind.ObjectMapper(factory)
        module = jackson.databind.module.SimpleModule()
        module.addAbstractTypeMapping(
            self.load_class("org.apache.spark.sql.catalyst.InternalRow"),
            self.load_class("org.apache.spark.sql.catalyst.expressions.UnsafeRow"),
        )
        mapper.registerModule(jackson.module.scala.DefaultScalaModule())
        mapper.registerModule(module)
        accessor, visibility = jackson.annotation.PropertyAccessor, jackson.annotation.JsonAutoDetect.Visibility
        for kind, level in (("ALL", "NONE"), ("FIELD", "ANY"), ("CREATOR", "ANY")):
            mapper.setVisibility(accessor.valueOf(kind), visibility.valueOf(level))
        mapper.activateDefaultTyping(
            jackson.databind.jsontype.impl.LaissezFaireSubTypeValidator.instance,
            jackson.databind.ObjectMapper.DefaultTyping.valueOf("JAVA_LANG_OBJECT"),
        )
        return mapper


def jvm_of(spark: SparkSession) -> Jvm:
    """Return the JVM of a classic session."""
    return _jvm(spark.sparkContext._gateway)


@lru_cache(maxsize=2)
def _jvm(gateway: Any) -> Jvm:
    return Jvm(gateway)
