package main

import (
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	health "google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"

	weir "example.com/you/weirv1"
)

const tigers = "zewtopia.com/tigerfeeding"

func decisions(connection *grpc.ClientConn) {
	answered := func(asked *ask) *answer {
		got, err := shouldAllow(connection, asked)
		must(err)
		return got
	}
	allowed := func(asked *ask) bool { return answered(asked).Allowed }
	remaining := func(asked *ask) uint64 { return *answered(asked).Remaining }
	reason := func(asked *ask) weir.Reason { return answered(asked).Reason }

	first := answered(asking(tigers, "bob"))
	equal("the first call is allowed", first.Allowed, true)
	equal("what remains", []uint64{*first.Remaining, *first.Limit}, []uint64{0, 1})
	equal("an allowed call has nothing to wait for", first.RetryAfter == nil, true)
	equal("each limit tells", []string{first.Limits[0].Name, first.Limits[1].Name}, []string{"everyone", "each"})

	second := answered(asking(tigers, "bob"))
	equal("the second is denied", []interface{}{second.Allowed, second.Reason}, []interface{}{false, weir.Reason_REASON_LIMITED})
	equal("by the limit that says so", second.DeniedBy, []string{"each"})
	wait := second.RetryAfter.Seconds
	check(fmt.Sprint(wait), 3540 <= wait && wait <= 3600)
	check(second.Message, strings.HasPrefix(second.Message, "Rate limit exceeded. Try again in "))
	equal("another consumer is not", allowed(asking(tigers, "carol")), true)

	equal("a cost is taken", remaining(costing(7, asking("api/search", "bob"))), uint64(3))
	peek := costing(3, asking("api/search", "bob"))
	peek.Peek = true
	equal("a peek takes nothing", remaining(peek), uint64(3))
	equal("nor does cost 0", remaining(costing(0, asking("api/search", "bob"))), uint64(3))
	equal("a cost above the limit has reason NEVER", reason(costing(11, asking("api/search", "bob"))), weir.Reason_REASON_NEVER)
	equal("an attribute is counted by", allowed(costing(2, by("region", "north", asking("maps", "bob")))), true)
	equal("used up there", allowed(by("region", "north", asking("maps", "eve"))), false)
	equal("who is on the deny list", reason(asking(tigers, "bot-7")), weir.Reason_REASON_DENY_LIST)
	equal("who is on the allow list", reason(asking(tigers, "keeper")), weir.Reason_REASON_ALLOW_LIST)

	misspelt := asking(tigers, "bob")
	misspelt.Strategy = "tiger-fedding"
	_, err := shouldAllow(connection, misspelt)
	refused("an unknown strategy", err, codes.NotFound, "tiger-feeding")
	_, err = shouldAllow(connection, asking("", "bob"))
	refused("no resource", err, codes.InvalidArgument, "resource")
	_, err = shouldAllow(connection, asking("größe/100%/老虎", "bob"))
	refused("an error shows text that is not ASCII in full", err, codes.NotFound, "größe/100%/老虎")

	batched(connection)
	refunds(connection)
}

func batched(connection *grpc.ClientConn) {
	within, cancel := soon()
	defer cancel()
	erin := func(cost uint64) *ask { return costing(cost, asking("api/search", "erin")) }
	asked := &weir.ShouldAllowBatchRequest{Requests: []*ask{erin(4), erin(7), asking("nowhere", "erin"), erin(0)}}
	several, err := of(connection).ShouldAllowBatch(within, asked)
	must(err)
	equal("one that fails fails alone", several.Results[2].GetError().GetCode(), int32(codes.NotFound))
	got := []bool{}
	for _, i := range []int{0, 1, 3} {
		got = append(got, several.Results[i].GetResponse().GetAllowed())
	}
	equal("a batch is answered in order", got, []bool{true, false, true})
}

func refunds(connection *grpc.ClientConn) {
	within, cancel := soon()
	defer cancel()
	giveBack := &weir.RefundRequest{Resource: "api/search", Consumer: "erin", Cost: proto.Uint64(3), Id: "order-1"}
	once, err := of(connection).Refund(within, giveBack)
	must(err)
	again, err := of(connection).Refund(within, giveBack)
	must(err)
	equal("a refund is applied once", []bool{once.Applied, again.Applied}, []bool{true, false})
	equal("to its limits", once.Limits[0].Remaining, uint64(9))
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
