package main

import (
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	weir "example.com/you/weirv1"
)

type ask = weir.ShouldAllowRequest
type answer = weir.ShouldAllowResponse

func of(connection *grpc.ClientConn) weir.RateLimitServiceClient {
	return weir.NewRateLimitServiceClient(connection)
}

func asking(resource, consumer string) *ask {
	return &ask{Resource: resource, Consumer: consumer}
}

func costing(cost uint64, asked *ask) *ask {
	asked.Cost = proto.Uint64(cost)
	return asked
}

func by(attribute, value string, asked *ask) *ask {
	asked.Attributes = map[string]string{attribute: value}
	return asked
}

func streamed(id uint64, asked ...*ask) *weir.ShouldAllowStreamRequest {
	all := &weir.ShouldAllowStreamRequest{}
	for i, one := range asked {
		all.Requests = append(all.Requests, &weir.StreamedRequest{Id: id + uint64(i), Request: one})
	}
	return all
}
