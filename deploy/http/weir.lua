-- HAProxy asks Weir before it passes a request on. Sets txn.weir_status, txn.weir_retry and txn.weir_reason.
-- The second argument of the action is the name of the check.

local ASK = "http://127.0.0.1:8082/check/"

core.register_action("weir", { "http-req" }, function(txn, check)
    local answer = core.httpclient():head({
        url = ASK .. check,
        timeout = 200,
        headers = {
            ["host"] = { "weir" },
            ["x-forwarded-for"] = { txn.f:src() },
            ["x-forwarded-method"] = { txn.f:method() },
            ["x-forwarded-uri"] = { txn.f:pathq() },
        },
    })
    local headers = answer and answer.headers or {}
    txn:set_var("txn.weir_status", answer and answer.status or 0)
    txn:set_var("txn.weir_retry", (headers["retry-after"] or {})[0] or "")
    txn:set_var("txn.weir_reason", (headers["weir-reason"] or {})[0] or "")
end, 1)
