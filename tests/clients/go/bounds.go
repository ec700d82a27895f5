package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	weir "example.com/you/weirv1"
)

func bounds(connection *grpc.ClientConn) {
	with := func(pairs ...string) error {
		within, cancel := soon()
		defer cancel()
		within = metadata.AppendToOutgoingContext(within, pairs...)
		_, err := of(connection).ShouldAllow(within, asking("api/metadata", "bob"))
		return err
	}
	for i := 0; i < 50; i++ {
		must(with("x-same", "a", "x-changing", fmt.Sprint(strings.Repeat("y", 100), i), "x-bytes-bin", "\x00\xff"))
	}
	// More than a frame takes, so the rest comes in CONTINUATION; Huffman's code makes this text no shorter.
	for _, kib := range []int{15, 17, 60} {
		equal(fmt.Sprint("metadata of ", kib, " KiB"), with("x-large", strings.Repeat("~", kib<<10)), nil)
	}
	// grpc-go heeds what the server says that it takes.
	refused("more metadata than the server takes", with("x-large", strings.Repeat("~", 65<<10)), codes.Internal, "header list size")
	must(with("x-same", "a"))

	within, cancel := soon()
	defer cancel()
	largeBatch := func(padding string) (int, error) {
		asked := &weir.ShouldAllowBatchRequest{}
		for i := 0; i < 1000; i++ {
			asked.Requests = append(asked.Requests, by("padding", padding, asking("api/batch", fmt.Sprint(i))))
		}
		got, err := of(connection).ShouldAllowBatch(within, asked)
		return len(got.GetResults()), err
	}
	answered, err := largeBatch(strings.Repeat("x", 500))
	must(err)
	equal("a batch of half a MiB", answered, 1000)
	for i := 0; i < 3; i++ {
		_, err = largeBatch(strings.Repeat("x", 5000))
		refused("a batch that is too large", err, codes.ResourceExhausted, "may be sent")
	}
	refused("an unknown method", connection.Invoke(within, service+"Nothing", &ask{}, &answer{}), codes.Unimplemented, "")
	refused("an unknown service", connection.Invoke(within, "/no.Such/Thing", &ask{}, &answer{}), codes.Unimplemented, "")
}

// Calls whose time is up before, while and after they are answered.
func ends(connection *grpc.ClientConn) {
	outcomes := map[codes.Code]int{}
	for i := 0; i < 2000; i++ {
		within, cancel := context.WithTimeout(context.Background(), time.Duration(i)*time.Microsecond)
		_, err := of(connection).ShouldAllow(within, asking("api/late", "bob"))
		cancel()
		outcomes[status.Code(err)]++
	}
	late := outcomes[codes.DeadlineExceeded]
	check(fmt.Sprint(outcomes), late > 0 && late+outcomes[codes.OK] == 2000)

	within, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_, err := open(within, connection).Recv()
	refused("the deadline of a stream", err, codes.DeadlineExceeded, "")
}
