package main

import (
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
)

const tigers = "zewtopia.com/tigerfeeding"

// Of Reason.
const (
	limited   = 2
	never     = 3
	denyList  = 4
	allowList = 5
)

func decisions(connection *grpc.ClientConn) {
	answered := func(asked *ask) *answer {
		got, err := shouldAllow(connection, asked)
		must(err)
		return got
	}
	allowed := func(asked *ask) bool { return get(answered(asked).Allowed) }
	remaining := func(asked *ask) uint64 { return *answered(asked).Remaining }
	reason := func(asked *ask) int32 { return get(answered(asked).Reason) }

	first := answered(asking(tigers, "bob"))
	equal("the first call is allowed", get(first.Allowed), true)
	equal("what remains", []uint64{*first.Remaining, *first.Limit}, []uint64{0, 1})
	equal("an allowed call has nothing to wait for", first.RetryAfter == nil, true)
	equal("each limit tells", []string{*first.Limits[0].Name, *first.Limits[1].Name}, []string{"everyone", "each"})

	second := answered(asking(tigers, "bob"))
	equal("the second is denied", []interface{}{get(second.Allowed), get(second.Reason)}, []interface{}{false, int32(limited)})
	equal("by the limit that says so", second.DeniedBy, []string{"each"})
	wait := get(second.RetryAfter.Seconds)
	check(fmt.Sprint(wait), 3540 <= wait && wait <= 3600)
	check(*second.Message, strings.HasPrefix(*second.Message, "Rate limit exceeded. Try again in "))
	equal("another consumer is not", allowed(asking(tigers, "carol")), true)

	equal("a cost is taken", remaining(asking("api/search", "bob").costing(7)), uint64(3))
	peek := asking("api/search", "bob").costing(3)
	peek.Peek = some(true)
	equal("a peek takes nothing", remaining(peek), uint64(3))
	equal("nor does cost 0", remaining(asking("api/search", "bob").costing(0)), uint64(3))
	equal("what can never fit is told", reason(asking("api/search", "bob").costing(11)), int32(never))
	equal("an attribute is counted by", allowed(asking("maps", "bob").by("region", "north").costing(2)), true)
	equal("used up there", allowed(asking("maps", "eve").by("region", "north")), false)
	equal("who is on the deny list", reason(asking(tigers, "bot-7")), int32(denyList))
	equal("who is on the allow list", reason(asking(tigers, "keeper")), int32(allowList))

	misspelt := asking(tigers, "bob")
	misspelt.Strategy = some("tiger-fedding")
	_, err := shouldAllow(connection, misspelt)
	refused("an unknown strategy", err, codes.NotFound, "tiger-feeding")
	_, err = shouldAllow(connection, asking("", "bob"))
	refused("no resource", err, codes.InvalidArgument, "resource")
	_, err = shouldAllow(connection, asking("größe/100%/老虎", "bob"))
	refused("what is not ASCII is told in full", err, codes.NotFound, "größe/100%/老虎")

	batched(connection)
	refunds(connection)
}

func batched(connection *grpc.ClientConn) {
	within, cancel := soon()
	defer cancel()
	erin := func(cost uint64) *ask { return asking("api/search", "erin").costing(cost) }
	several := &results{}
	asked := &batch{Requests: []*ask{erin(4), erin(7), asking("nowhere", "erin"), erin(0)}}
	must(connection.Invoke(within, service+"ShouldAllowBatch", asked, several))
	equal("one that fails fails alone", get(several.Results[2].Error.Code), int32(codes.NotFound))
	got := []bool{}
	for _, i := range []int{0, 1, 3} {
		got = append(got, get(several.Results[i].Response.Allowed))
	}
	equal("a batch is answered in order", got, []bool{true, false, true})
}

func refunds(connection *grpc.ClientConn) {
	within, cancel := soon()
	defer cancel()
	giveBack := &refund{Resource: some("api/search"), Consumer: some("erin"), Cost: some(uint64(3)), ID: some("order-1")}
	once, again := &refunded{}, &refunded{}
	must(connection.Invoke(within, service+"Refund", giveBack, once))
	must(connection.Invoke(within, service+"Refund", giveBack, again))
	equal("a refund is applied once", []bool{get(once.Applied), get(again.Applied)}, []bool{true, false})
	equal("to its limits", get(once.Limits[0].Remaining), uint64(9))
}

// Health and reflection, with the stubs that come with grpc-go.
func standard(connection *grpc.ClientConn) {
	within, cancel := soon()
	defer cancel()
	for _, name := range []string{"", "weir.v1.RateLimitService"} {
		answer, err := health.NewHealthClient(connection).Check(within, &health.HealthCheckRequest{Service: name})
		must(err)
		equal(fmt.Sprintf("health of %q", name), answer.Status, health.HealthCheckResponse_SERVING)
	}
	watch, err := health.NewHealthClient(connection).Watch(within, &health.HealthCheckRequest{})
	must(err)
	watched, err := watch.Recv()
	must(err)
	equal("health is watched", watched.Status, health.HealthCheckResponse_SERVING)

	reflected, err := reflection.NewServerReflectionClient(connection).ServerReflectionInfo(within)
	must(err)
	list := &reflection.ServerReflectionRequest_ListServices{}
	must(reflected.Send(&reflection.ServerReflectionRequest{MessageRequest: list}))
	listed, err := reflected.Recv()
	must(err)
	equal("reflection", strings.Contains(listed.String(), "weir.v1.RateLimitService"), true)
	must(reflected.CloseSend())
}
