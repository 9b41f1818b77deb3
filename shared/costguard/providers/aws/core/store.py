"""Records in one DynamoDB table: partition key `kind`, sort key `key`.

A partition takes 1,000 write units a second ("Best practices for designing and using partition keys effectively"), and
each record of a run's audit is written in a transaction, which counts twice. So the audit of runs lies in several
partitions, by chain: `audit#0` to `audit#7`. What an older version wrote stays where it is, under its kind alone; it is
found and changed there. An older version does not see what lies elsewhere, so only what two versions never both begin
lies there. Chains that every version appends to (of people, of the outbox), and every record that gates an action, have
one place for all (docs/decisions/where-records-lie.md).

Every read is strongly consistent, every write conditional on the version. A retry by the SDK after a lost
answer is not taken for somebody else's write: a single item carries the id of its write, and a
transaction its idempotency token.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

from costguard.domain.errors import InvalidInputError, LedgerError, VersionConflictError
from costguard.ports import Put, Record, VersionCheck
from costguard.ports.records import Ledger, Name, body_text, conflict, record_from, target_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

MAX_ITEM_BYTES = 400 * 1024  # "Service, account, and table quotas": attribute names and values together
_NUMBER_BYTES = 21  # the most a number takes, by "DynamoDB item sizes and formats"
_CONFLICTS = frozenset({"ConditionalCheckFailed", "TransactionConflict"})
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")  # DynamoDB CreateTable, TableName
_OPTIONS = frozenset({"region", "endpoint_url"})
_NAMES = {"#kind": "kind", "#key": "key"}
_SPREAD = frozenset({"audit", "audit_head"})  # their keys begin with RUN/SHARD/, which is their chain
_OF_ALL_VERSIONS = ("operator/", "outbox/")  # chains of no run: an older version appends to them as well
_PARTITIONS = 8  # twice the 4,000 writes a second that a new table takes ("DynamoDB on-demand capacity mode")
_MOST_KEYS = 100  # BatchGetItem, RequestItems
_CONFIG = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=5, read_timeout=10)


def open_dynamodb(url: str) -> DynamoDbLedger:
    """The ledger at `dynamodb://TABLE?region=REGION&endpoint_url=URL`; nothing is read or written yet.

    Raises:
        InvalidInputError: not an address of a DynamoDB ledger.
    """
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    options = dict(pairs)
    unknown = sorted(options.keys() - _OPTIONS)
    empty = sorted(name for name, value in pairs if not value)
    table = parts.netloc
    if not _TABLE_NAME.fullmatch(table) or parts.path.strip("/") or unknown or empty or len(options) != len(pairs):
        detail = f"; unknown: {', '.join(unknown)}" if unknown else f"; empty: {', '.join(empty)}" if empty else ""
        message = f"a DynamoDB ledger is named dynamodb://TABLE?region=REGION{detail}"
        raise InvalidInputError(message)
    client = dynamodb_client(options.get("region", ""), options.get("endpoint_url", ""))
    return DynamoDbLedger(client, table)


def dynamodb_client(region: str = "", endpoint_url: str = "") -> DynamoDBClient:
    """A client with the process's own credentials.

    Raises:
        InvalidInputError: no region was given and the environment names none.
    """
    try:
        return boto3.session.Session().client(
            "dynamodb", region_name=region or None, endpoint_url=endpoint_url or None, config=_CONFIG
        )
    except NoRegionError as err:
        message = "the DynamoDB ledger needs a region: dynamodb://TABLE?region=us-east-1"
        raise InvalidInputError(message) from err
    except (BotoCoreError, ValueError) as err:
        message = f"the DynamoDB ledger cannot be reached as given: {err}"
        raise InvalidInputError(message) from err


class DynamoDbLedger(Ledger):
    """A `RecordStore` in one table. The table is made by Terraform, or by an explicit `create_table()`.

    Whoever creates a record of a run's audit has read that there is none: one under the kind alone is not looked for.

    Permissions: dynamodb:GetItem, BatchGetItem, PutItem, Query, ConditionCheckItem on the table; CreateTable and
    DescribeTable only for `create_table`.
    """

    def __init__(self, client: DynamoDBClient, table: str, *, page_size: int = 200) -> None:
        super().__init__(durable=True, page_size=page_size)
        self._client = client
        self._table = table

    def create_table(self) -> None:
        """Create the table, billed per request and protected from deletion; waits until it is active.

        Raises:
            LedgerError: it exists already, or may not be created.
        """
        with self._as_ledger_errors("CreateTable"):
            self._client.create_table(
                TableName=self._table,
                KeySchema=[
                    {"AttributeName": "kind", "KeyType": "HASH"},
                    {"AttributeName": "key", "KeyType": "RANGE"},
                ],
                AttributeDefinitions=[
                    {"AttributeName": "kind", "AttributeType": "S"},
                    {"AttributeName": "key", "AttributeType": "S"},
                ],
                BillingMode="PAY_PER_REQUEST",
                DeletionProtectionEnabled=True,
            )
            waiter = self._client.get_waiter("table_exists")
            waiter.wait(TableName=self._table, WaiterConfig={"Delay": 2, "MaxAttempts": 60})

    def close(self) -> None:
        """Close pooled connections."""
        self._client.close()

    def _prepare(self) -> None:
        """Nothing: a missing table is an error of the first read, never made good in silence."""

    def _read(self, kind: str, key: str) -> Record | None:
        if _place(kind, key) != kind:
            return next(iter(self._read_many([(kind, key)])), None)
        with self._as_ledger_errors("GetItem"):
            answer = self._client.get_item(TableName=self._table, Key=_item_key(kind, key), ConsistentRead=True)
        item = answer.get("Item")
        return None if item is None else _record(item)

    def _read_many(self, names: Sequence[Name]) -> Sequence[Record]:
        """DynamoDB leaves out what is over 16 MB, or over the table's throughput, and says so: that is asked again."""
        places = dict.fromkeys((place, key) for kind, key in names for place in (kind, _place(kind, key)))
        every = [_item_key(place, key) for place, key in places]
        read = [one for at in range(0, len(every), _MOST_KEYS) for one in self._batch(every[at : at + _MOST_KEYS])]
        by_place = sorted(read, key=lambda item: len(item["kind"]["S"]))  # of two, that of this version
        records = map(_record, by_place)
        return list({(record.kind, record.key): record for record in records}.values())

    def _batch(self, left: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = []
        while left:
            wanted: Any = {self._table: {"Keys": left, "ConsistentRead": True}}
            with self._as_ledger_errors("BatchGetItem"):
                answer: Mapping[str, Any] = self._client.batch_get_item(RequestItems=wanted)
            found += answer["Responses"].get(self._table, ())
            unread = answer.get("UnprocessedKeys", {}).get(self._table, {}).get("Keys", [])
            if len(unread) >= len(left):  # an answer that read nothing is an error, by the API's own words
                message = f"dynamodb:BatchGetItem on table {self._table} read none of {len(left)} items"
                raise LedgerError(message)
            left = unread
        return found

    def _pages(self, kind: str, prefix: str, after: str) -> Iterator[Record]:
        """Of each partition that may have some, in the order of keys over all."""
        each = [super(DynamoDbLedger, self)._pages(place, prefix, after) for place in _places(kind, prefix)]
        return heapq.merge(*each, key=attrgetter("key"))

    def _page(self, kind: str, prefix: str, after: str, limit: int) -> tuple[Sequence[Record], bool]:
        request: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#kind = :kind",
            "ExpressionAttributeNames": {"#kind": "kind"},
            "ExpressionAttributeValues": {":kind": {"S": kind}},
            "ConsistentRead": True,
            "Limit": limit,
        }
        if prefix:
            request["KeyConditionExpression"] += " AND begins_with(#key, :prefix)"
            request["ExpressionAttributeNames"] = _NAMES
            request["ExpressionAttributeValues"][":prefix"] = {"S": prefix}
        if after:  # starts with `prefix`: a start key outside the condition is refused
            request["ExclusiveStartKey"] = _item_key(kind, after)
        with self._as_ledger_errors("Query"):
            answer = self._client.query(**request)
        return [_record(item) for item in answer["Items"]], bool(answer.get("LastEvaluatedKey"))

    def _write(self, operations: Sequence[Put | VersionCheck]) -> None:
        """What an older version wrote is changed where it is, which shows when it is not found elsewhere."""
        try:
            self._write_at(operations, frozenset())
        except VersionConflictError:
            before = self._written_before(operations)
            if not before:
                raise
            self._write_at(operations, before)

    def _written_before(self, operations: Sequence[Put | VersionCheck]) -> frozenset[tuple[str, str]]:
        named = (target_of(operation) for operation in operations)
        spread = [(kind, key) for kind, key, expected in named if expected and _place(kind, key) != kind]
        found = self._batch([_item_key(kind, key) for kind, key in spread]) if spread else ()
        return frozenset((item["kind"]["S"], item["key"]["S"]) for item in found)

    def _write_at(self, operations: Sequence[Put | VersionCheck], before: frozenset[tuple[str, str]]) -> None:
        """Write all or nothing: those of `before` under their kind alone, all others in their place."""
        if len(operations) == 1 and isinstance(operations[0], Put):
            self._write_one(operations[0], before)
            return
        items = [self._transaction_item(operation, before) for operation in operations]
        try:
            with self._as_ledger_errors("TransactWriteItems"):
                # botocore adds the ClientRequestToken that makes its own retries harmless
                self._client.transact_write_items(TransactItems=items)  # type: ignore[arg-type]
        except _CancelledError as err:
            lost = [op for op, code in zip(operations, err.codes, strict=False) if code in _CONFLICTS]
            if not lost:
                message = f"DynamoDB cancelled the transaction: {', '.join(err.codes)}"
                raise LedgerError(message) from err
            raise conflict(*target_of(lost[0])) from err

    def _write_one(self, operation: Put, before: frozenset[tuple[str, str]]) -> None:
        kind, key, expected = target_of(operation)
        write_id = uuid.uuid4().hex
        try:
            with self._as_ledger_errors("PutItem"):
                self._client.put_item(
                    TableName=self._table,
                    Item=_item(operation, write_id, before),
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **_condition(expected),
                )
        except _ConditionFailedError as err:
            if err.item.get("write", {}).get("S") == write_id:
                return  # the SDK sent this very write twice; its first answer was lost
            raise conflict(kind, key, expected) from err

    def _transaction_item(self, operation: Put | VersionCheck, before: frozenset[tuple[str, str]]) -> dict[str, Any]:
        kind, key, expected = target_of(operation)
        request = {"TableName": self._table, **_condition(expected)}
        if isinstance(operation, Put):
            return {"Put": {**request, "Item": _item(operation, uuid.uuid4().hex, before)}}
        place = kind if (kind, key) in before else _place(kind, key)
        return {"ConditionCheck": {**request, "Key": _item_key(place, key)}}

    @contextmanager
    def _as_ledger_errors(self, operation: str) -> Iterator[None]:
        try:
            yield
        except ClientError as err:
            answer: Mapping[str, Any] = err.response
            code = answer["Error"].get("Code", "")
            if code in {"ConditionalCheckFailedException", "TransactionConflictException"}:
                raise _ConditionFailedError(answer.get("Item", {})) from err
            if code == "TransactionCanceledException":
                raise _CancelledError([reason.get("Code", "") for reason in answer["CancellationReasons"]]) from err
            if code == "ResourceNotFoundException":
                message = f"the DynamoDB table {self._table} does not exist in {self._client.meta.region_name}"
                raise LedgerError(message) from err
            message = f"dynamodb:{operation} on table {self._table} failed: {code}: {answer['Error'].get('Message')}"
            raise LedgerError(message) from err
        except BotoCoreError as err:
            message = f"dynamodb:{operation} on table {self._table} failed: {err}"
            raise LedgerError(message) from err


class _ConditionFailedError(VersionConflictError):
    """A single item was not as expected; `item` is what stood there, where DynamoDB told it."""

    def __init__(self, item: Mapping[str, Any]) -> None:
        super().__init__("a condition failed")
        self.item = item


class _CancelledError(LedgerError):
    """A transaction was cancelled; one code per operation."""

    def __init__(self, codes: Sequence[str]) -> None:
        super().__init__("a transaction was cancelled")
        self.codes = codes


def _condition(expected: int) -> dict[str, Any]:
    if expected == 0:
        return {"ConditionExpression": "attribute_not_exists(#key)", "ExpressionAttributeNames": {"#key": "key"}}
    return {
        "ConditionExpression": "#version = :expected",
        "ExpressionAttributeNames": {"#version": "version"},
        "ExpressionAttributeValues": {":expected": {"N": str(expected)}},
    }


def _place(kind: str, key: str) -> str:
    """The partition key of a record that this version creates."""
    if kind not in _SPREAD or key.startswith(_OF_ALL_VERSIONS):
        return kind
    chain = "/".join(key.split("/", 2)[:2])
    return f"{kind}#{hashlib.sha256(chain.encode()).digest()[0] % _PARTITIONS}"


def _places(kind: str, prefix: str) -> Sequence[str]:
    """The partition keys of all records of a kind whose keys begin so; the first is where older versions write."""
    if kind not in _SPREAD or prefix.startswith(_OF_ALL_VERSIONS):
        return (kind,)
    if prefix.count("/") > 1:  # it names the whole chain
        return (kind, _place(kind, prefix))
    return (kind, *(f"{kind}#{number}" for number in range(_PARTITIONS)))


def _item_key(place: str, key: str) -> dict[str, Any]:
    return {"kind": {"S": place}, "key": {"S": key}}


def _item(operation: Put, write_id: str, before: frozenset[tuple[str, str]] = frozenset()) -> dict[str, Any]:
    record = operation.record
    place = record.kind if (record.kind, record.key) in before else _place(record.kind, record.key)
    item = {
        **_item_key(place, record.key),
        "version": {"N": str(operation.expect_version + 1)},
        "schema": {"N": str(record.schema)},
        "body": {"S": body_text(record)},
        "write": {"S": write_id},
    }
    size = sum(len(name) + len(value["S"].encode()) if "S" in value else _NUMBER_BYTES for name, value in item.items())
    if size > MAX_ITEM_BYTES:
        message = (
            f"record {record.kind}/{record.key} has {size:,} bytes; DynamoDB stores at most {MAX_ITEM_BYTES:,} "
            "in one item. Nothing was written; a SQLite or PostgreSQL ledger has no such limit"
        )
        raise LedgerError(message)
    return item


def _record(item: Mapping[str, Any]) -> Record:
    try:
        place, numbers = item["kind"]["S"], (int(item["version"]["N"]), int(item["schema"]["N"]))
        kind = place.partition("#")[0]
        return record_from(kind if kind in _SPREAD else place, item["key"]["S"], *numbers, item["body"]["S"])
    except (KeyError, ValueError) as err:
        message = f"an item of the ledger's table is not a record: {sorted(item)}"
        raise LedgerError(message) from err
