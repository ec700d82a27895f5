package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	weir "example.com/you/weirv1"
)

func open(within context.Context, connection *grpc.ClientConn) weir.RateLimitService_ShouldAllowStreamClient {
	stream, err := of(connection).ShouldAllowStream(within)
	must(err)
	return stream
}

func streams(connection *grpc.ClientConn) {
	within, cancel := soon()
	defer cancel()
	oneByOne(open(within, connection))
	drained(open(within, connection), 20_000, 1, "")
	drained(open(within, connection), 200, 500, "")
	// Messages of some MiB: far more than any window.
	drained(open(within, connection), 8, 5_000, strings.Repeat("x", 500))
	cancelled(connection)

	tooLarge := open(within, connection)
	// It may fail before all is sent; why, the answer tells.
	_ = tooLarge.Send(streamed(1, asking(strings.Repeat("x", 8<<20), "bob")))
	_, err := tooLarge.Recv()
	refused("a message that is too large", err, codes.ResourceExhausted, "may be sent")
}

// Each question when the one before it is answered.
func oneByOne(stream weir.RateLimitService_ShouldAllowStreamClient) {
	for id := uint64(1); id <= 100; id++ {
		must(stream.Send(streamed(id, asking("api/stream", "one-by-one"))))
		got, err := stream.Recv()
		must(err)
		check("one answer", len(got.Results) == 1 && got.Results[0].Id == id)
		check(fmt.Sprint("question ", id), got.Results[0].GetResponse().GetAllowed() == (id <= 10))
	}
	must(stream.CloseSend())
	_, err := stream.Recv()
	equal("a stream ends well", err, io.EOF)
}

// All is sent and our side closed, while answers come; every question has one, in order.
func drained(stream weir.RateLimitService_ShouldAllowStreamClient, messages, each int, padding string) {
	go func() {
		asked := make([]*ask, each)
		for i := range asked {
			asked[i] = by("padding", padding, costing(0, asking("api/drained", fmt.Sprint(i%97))))
		}
		for i := 0; i < messages; i++ {
			must(stream.Send(streamed(uint64(i*each), asked...)))
		}
		must(stream.CloseSend())
	}()
	next := uint64(0)
	got, err := stream.Recv()
	for ; err == nil; got, err = stream.Recv() {
		for _, one := range got.Results {
			check(fmt.Sprint(one.Id, " is not ", next), one.Id == next)
			check("it is allowed", one.GetResponse().GetAllowed())
			next++
		}
	}
	equal(fmt.Sprintf("%d messages of %d questions", messages, each), err, io.EOF)
	equal("each is answered, in order", next, uint64(messages*each))
}

// Streams that their caller gives up, with and without answers that nobody has read.
func cancelled(connection *grpc.ClientConn) {
	for i := 0; i < 200; i++ {
		within, cancel := context.WithCancel(context.Background())
		stream := open(within, connection)
		for j := 0; j < 10; j++ {
			must(stream.Send(streamed(1, asking("api/cancelled", "bob"))))
		}
		if i%2 == 0 {
			_, err := stream.Recv()
			must(err)
		}
		cancel()
		var err error
		for err == nil {
			_, err = stream.Recv()
		}
		check(err.Error(), status.Code(err) == codes.Canceled)
	}
	_, err := shouldAllow(connection, asking("api/after", "bob"))
	equal("streams can be cancelled", err, nil)
}
