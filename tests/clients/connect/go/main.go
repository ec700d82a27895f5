// Calls Weir with Connect for Go, as JSON and as Protobuf: client URL
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	weirv1 "example.com/you/weirv1"
	"example.com/you/weirv1/weirv1connect"
)

func check(ok bool, what ...any) {
	if !ok {
		log.Fatal(what...)
	}
}

func codeOf(err error) connect.Code {
	check(err != nil, "no error")
	return connect.CodeOf(err)
}

func calls(consumer string, options ...connect.ClientOption) {
	client := weirv1connect.NewRateLimitServiceClient(http.DefaultClient, os.Args[1], options...)
	cost := uint64(1)
	question := &weirv1.ShouldAllowRequest{Resource: "x", Consumer: consumer, Strategy: "two", Cost: &cost, Headers: true}
	for call, wanted := range []bool{true, true, false} {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		answer, err := client.ShouldAllow(ctx, connect.NewRequest(question))
		cancel()
		check(err == nil, err)
		check(answer.Msg.Allowed == wanted, call, answer.Msg)
		if !wanted {
			check(answer.Msg.Reason == weirv1.Reason_REASON_LIMITED, answer.Msg)
			check(answer.Msg.RetryAfter.Seconds == 1799 && answer.Msg.Headers["Retry-After"] == "1800", answer.Msg)
		}
	}
	batch := &weirv1.ShouldAllowBatchRequest{Requests: []*weirv1.ShouldAllowRequest{question, question}}
	answers, err := client.ShouldAllowBatch(context.Background(), connect.NewRequest(batch))
	check(err == nil, err)
	check(len(answers.Msg.Results) == 2 && !answers.Msg.Results[1].GetResponse().Allowed, answers)
	unknown := &weirv1.ShouldAllowRequest{Resource: "x", Consumer: "y", Strategy: "tow"}
	_, err = client.ShouldAllow(context.Background(), connect.NewRequest(unknown))
	check(codeOf(err) == connect.CodeNotFound && strings.Contains(err.Error(), "tow"), err)
	details := err.(*connect.Error).Details()
	check(len(details) == 1 && details[0].Type() == "google.rpc.ErrorInfo", details)
	_, err = client.ShouldAllow(context.Background(), connect.NewRequest(&weirv1.ShouldAllowRequest{Resource: "x"}))
	check(codeOf(err) == connect.CodeNotFound || codeOf(err) == connect.CodeInvalidArgument, err)
	large := &weirv1.ShouldAllowRequest{Resource: strings.Repeat("x", 70_000)}
	_, err = client.ShouldAllow(context.Background(), connect.NewRequest(large))
	check(codeOf(err) == connect.CodeResourceExhausted, err)
	stream := client.ShouldAllowStream(context.Background())
	check(stream.CloseRequest() == nil, "the stream does not end")
	_, err = stream.Receive()
	check(codeOf(err) == connect.CodeUnimplemented, err)
	queues := weirv1connect.NewQueueServiceClient(http.DefaultClient, os.Args[1], options...)
	// Take waits no longer than the caller's deadline, which travels as a header; a busy caller may be late for the answer.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	take := &weirv1.TakeRequest{Queue: "jobs", Consumer: "worker", MaxWait: durationpb.New(20 * time.Second)}
	taken, err := queues.Take(ctx, connect.NewRequest(take))
	check(err == nil && len(taken.Msg.Items) == 0 || err != nil && codeOf(err) == connect.CodeDeadlineExceeded, err)
}

func main() {
	calls("go-json", connect.WithProtoJSON())
	calls("go-proto")
	fmt.Println("all ok")
}
