"""Calls as different callers: `identity.py CASES`. Fails at the first status that is not the expected one.

CASES is JSON: `server`, `ca`, `name` (of the certificate), and `cases`, each with `consumer` and `code`, and perhaps `cert`
and `key`, and `authorization`.
"""
import json
import sys

import grpc
from weir.v1 import rate_limit_pb2 as pb
from weir.v1 import rate_limit_pb2_grpc


def read(path):
    with open(path, "rb") as file:
        return file.read()


def call(asked, case):
    own = (read(case["key"]), read(case["cert"])) if "cert" in case else (None, None)
    credentials = grpc.ssl_channel_credentials(read(asked["ca"]), *own)
    options = [("grpc.ssl_target_name_override", asked["name"])]
    metadata = [("authorization", case["authorization"])] if "authorization" in case else []
    with grpc.secure_channel(asked["server"], credentials, options) as channel:
        request = pb.ShouldAllowRequest(resource="burst/x", consumer=case["consumer"])
        try:
            rate_limit_pb2_grpc.RateLimitServiceStub(channel).ShouldAllow(request, timeout=60, metadata=metadata)
            return "OK"
        except grpc.RpcError as error:
            return error.code().name


asked = json.loads(sys.argv[1])
for case in asked["cases"]:
    got = call(asked, case)
    assert got == case["code"], f"{case}: {got}"
print("all ok")
