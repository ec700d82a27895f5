package main

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Connections reach their maximum age. Their callers move to new connections, and no call fails. After the second
// time the test stops the server: calls are answered until no connection can be made.
func untilItEnds(connection *grpc.ClientConn) {
	const callers = 50
	var since, opened, ended int64
	together(callers, func(caller int) bool {
		var err error
		if caller == 0 {
			err = stream(connection, &opened)
		} else {
			_, err = shouldAllow(connection, asking("api/until", fmt.Sprint(caller)))
		}
		if err == nil {
			if atomic.LoadInt64(&connections) > 2 && atomic.AddInt64(&since, 1) == 2000 {
				fmt.Println("stop the server")
			}
			// So that there are calls at every moment of a connection's end, and the machine is not busy.
			time.Sleep(100 * time.Microsecond)
			return true
		}
		check(err.Error(), atomic.LoadInt64(&since) >= 2000 && status.Code(err) == codes.Unavailable)
		atomic.AddInt64(&ended, 1)
		return false
	})
	equal("every caller hears of the end", ended, int64(callers))
	check("a stream for each connection", opened > 2)
}

// One stream for as long as its connection lasts. Fails where none can be opened.
func stream(connection *grpc.ClientConn, opened *int64) error {
	within, cancel := soon()
	defer cancel()
	stream, err := of(connection).ShouldAllowStream(within)
	if err != nil {
		return err
	}
	atomic.AddInt64(opened, 1)
	for id := uint64(1); ; id++ {
		// EOF says that the stream has ended; why, the answer tells.
		if err := stream.Send(streamed(id, asking("api/until", "stream"))); err != nil {
			equal("the end of a stream comes with its answers", err, io.EOF)
		}
		if _, err := stream.Recv(); err != nil {
			refused("the end of a stream's connection", err, codes.Unavailable, "open a stream on another one")
			return nil
		}
	}
}
