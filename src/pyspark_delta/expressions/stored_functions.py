"""The functions and words that SQL text stored in a table may use.

The list holds functions of Spark that are deterministic and scalar, read nothing but their arguments, and return
results not much larger than the arguments. Most of it is what delta-spark allows in generated columns. Deliberately
absent:

- `java_method`, `reflect`, `try_reflect`: they call Java methods by name.
- `from_json`, `from_csv`, `from_xml`, `schema_of_*`: a schema in JSON makes Spark load the class that it names.
- `from_avro`, `from_protobuf`, `input_file_name`, `read_files`: files and schema registries.
- `xpath*`, `from_xml`: XML parsers.
- `raise_error`, `assert_true`: side effects. `json_tuple`, `explode`, `window`: generators.
- `rand`, `uuid`, `monotonically_increasing_id`, `spark_partition_id`: not deterministic.
- `current_catalog`, `current_database`, `version`: they read the session.
- `repeat`, `array_repeat`, `array_insert`, `sequence`: a single number determines the size of the result.
- `aes_*`: a key stored in the table is not secret.
"""

from __future__ import annotations

_SCALAR = """
abs acos acosh array_max array_min asin asinh atan atan2 atanh bin bround cbrt ceil ceiling cos cosh conv cot csc
degrees e exp expm1 factorial floor hypot ln log log10 log1p log2 mod negative pi pmod positive pow power radians rint
round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh width_bucket try_add
try_divide try_multiply try_subtract try_mod bit_count bit_get getbit

coalesce equal_null greatest if ifnull isnan isnotnull isnull least nanvl nullif nullifzero nvl nvl2 zeroifnull typeof

ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains decode elt encode
endswith find_in_set format_number format_string hex ilike initcap instr is_valid_utf8 lcase left len length levenshtein
like locate lower lpad ltrim luhn_check mask octet_length overlay parse_url position printf regexp regexp_count
regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr replace reverse right rlike rpad
rtrim sentences soundex space split split_part startswith str_to_map substr substring substring_index to_binary to_char
to_number to_varchar translate trim try_to_binary try_to_number try_validate_utf8 ucase unbase64 unhex upper url_decode
url_encode

add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd
datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour last_day
make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute
month monthname months_between next_day quarter second timestamp_micros timestamp_millis timestamp_seconds timestampadd
timestampdiff to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc
try_to_date try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp weekday weekofyear year

aggregate array array_append array_compact array_contains array_distinct array_except array_intersect array_join
array_position array_prepend array_remove array_size array_sort array_union arrays_overlap arrays_zip cardinality
element_at exists filter flatten forall get map map_concat map_contains_key map_entries map_filter map_from_arrays
map_from_entries map_keys map_values map_zip_with named_struct reduce size slice sort_array struct transform
transform_keys transform_values try_element_at zip_with

crc32 hash md5 sha sha1 sha2 xxhash64

get_json_object json_array_length json_object_keys is_variant_null parse_json to_csv to_json try_parse_json
try_variant_get variant_get

cast try_cast
"""
_TYPES = """
bigint binary boolean byte char character date dec decimal double float int integer long numeric real short smallint
string time timestamp timestamp_ltz timestamp_ntz tinyint varchar variant
"""
_UNITS = """
year quarter month week day dayofyear hour minute second millisecond microsecond nanosecond years quarters months weeks
days hours minutes seconds milliseconds microseconds nanoseconds dayofweek doy dow yearofweek
"""

_BUILTIN_TYPES = "bigint binary boolean char date decimal double float int smallint string time timestamp tinyint"
_CURRENT = """
curdate current_date current_time current_timestamp current_timezone current_user localtimestamp now session_user user
"""
_BEFORE_BRACKET = "and between case div else escape from in not or then when"
_SYNTAX = """
all any as both distinct end false for ilike interval is leading like null placing regexp rlike some to trailing true
"""

CURRENT = frozenset(_CURRENT.split())
"""Functions of the current time and user, for defaults and conditions; most can be written without ()."""

TYPES, UNITS = frozenset(_TYPES.split()), frozenset(_UNITS.split())
"""Words that are names except in the position of a type or a unit of time, in lower case."""

FUNCTIONS = frozenset(_SCALAR.split()) | frozenset(_BUILTIN_TYPES.split())
"""Words allowed before a bracket, in lower case.

All are Spark's own: any other name could be a user-defined function.
"""

SYNTAX_BEFORE_BRACKET = frozenset(_BEFORE_BRACKET.split())
"""Syntax that a bracket may follow, in lower case."""

SYNTAX = SYNTAX_BEFORE_BRACKET | frozenset(_SYNTAX.split())
"""Words that are never names, in lower case."""

QUERY_STARTS = frozenset(["from", "map", "reduce", "select", "table", "values", "with"])
"""Words that begin a query, in lower case."""

LARGEST_SIZE = 1000
_ROUNDING = ("round", "bround", "ceil", "ceiling", "floor")
SIZED = {"lpad": 1, "rpad": 1, "space": 0, "format_number": 1} | dict.fromkeys(_ROUNDING, 1)
"""The position of an argument that determines the size of a result, or of an intermediate number."""

TAKES_UNIT = frozenset(["date_add", "date_diff", "dateadd", "datediff", "timestampadd", "timestampdiff"])
"""Functions whose first argument may be a unit of time."""

FORMATS = frozenset(["format_string", "printf"])
"""Functions whose first argument is a format with widths."""
