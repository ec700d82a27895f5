package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func open(within context.Context, connection *grpc.ClientConn) grpc.ClientStream {
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	stream, err := connection.NewStream(within, both, service+"ShouldAllowStream")
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
	_ = tooLarge.SendMsg(streamed(1, asking(strings.Repeat("x", 8<<20), "bob")))
	refused("a message that is too large", tooLarge.RecvMsg(&replies{}), codes.OutOfRange, "may be sent")
}

// Each question when the one before it is answered.
func oneByOne(stream grpc.ClientStream) {
	for id := uint64(1); id <= 100; id++ {
		must(stream.SendMsg(streamed(id, asking("api/stream", "one-by-one"))))
		got := &replies{}
		must(stream.RecvMsg(got))
		check("one answer", len(got.Results) == 1 && get(got.Results[0].ID) == id)
		check(fmt.Sprint("question ", id), get(got.Results[0].Response.Allowed) == (id <= 10))
	}
	must(stream.CloseSend())
	equal("a stream ends well", stream.RecvMsg(&replies{}), io.EOF)
}

// All is sent and our side closed, while answers come; every question has one, in order.
func drained(stream grpc.ClientStream, messages, each int, padding string) {
	go func() {
		asked := make([]*ask, each)
		for i := range asked {
			asked[i] = asking("api/drained", fmt.Sprint(i%97)).costing(0).by("padding", padding)
		}
		for i := 0; i < messages; i++ {
			must(stream.SendMsg(streamed(uint64(i*each), asked...)))
		}
		must(stream.CloseSend())
	}()
	next := uint64(0)
	got := &replies{}
	err := stream.RecvMsg(got)
	for ; err == nil; err = stream.RecvMsg(got) {
		for _, one := range got.Results {
			check(fmt.Sprint(get(one.ID), " is not ", next), get(one.ID) == next)
			check("it is allowed", one.Error == nil && get(one.Response.Allowed))
			next++
		}
		got = &replies{}
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
			must(stream.SendMsg(streamed(1, asking("api/cancelled", "bob"))))
		}
		if i%2 == 0 {
			must(stream.RecvMsg(&replies{}))
		}
		cancel()
		var err error
		for err == nil {
			err = stream.RecvMsg(&replies{})
		}
		check(err.Error(), status.Code(err) == codes.Canceled)
	}
	_, err := shouldAllow(connection, asking("api/after", "bob"))
	equal("streams can be cancelled", err, nil)
}
