// The messages of weir.v1 that the tests need, field by field as in proto/weir/v1: what generates them for
// Go is older than `optional` on some systems. Every field says whether it is there, as in proto2: on the
// wire that is the same.
package main

type ask struct {
	Resource   *string           `protobuf:"bytes,1,opt,name=resource"`
	Consumer   *string           `protobuf:"bytes,2,opt,name=consumer"`
	Strategy   *string           `protobuf:"bytes,3,opt,name=strategy"`
	Cost       *uint64           `protobuf:"varint,4,opt,name=cost"`
	Peek       *bool             `protobuf:"varint,5,opt,name=peek"`
	Attributes map[string]string `protobuf:"bytes,6,rep,name=attributes" protobuf_key:"bytes,1,opt,name=key" protobuf_val:"bytes,2,opt,name=value"`
}

type answer struct {
	Allowed    *bool     `protobuf:"varint,1,opt,name=allowed"`
	Limit      *uint64   `protobuf:"varint,2,opt,name=limit"`
	Remaining  *uint64   `protobuf:"varint,3,opt,name=remaining"`
	RetryAfter *duration `protobuf:"bytes,4,opt,name=retry_after"`
	Reason     *int32    `protobuf:"varint,6,opt,name=reason"`
	DeniedBy   []string  `protobuf:"bytes,7,rep,name=denied_by"`
	Limits     []*limit  `protobuf:"bytes,8,rep,name=limits"`
	Message    *string   `protobuf:"bytes,9,opt,name=message"`
}

type limit struct {
	Name      *string `protobuf:"bytes,1,opt,name=name"`
	Remaining *uint64 `protobuf:"varint,4,opt,name=remaining"`
}

type duration struct {
	Seconds *int64 `protobuf:"varint,1,opt,name=seconds"`
}

type failure struct {
	Code *int32 `protobuf:"varint,1,opt,name=code"`
}

type batch struct {
	Requests []*ask `protobuf:"bytes,1,rep,name=requests"`
}

type results struct {
	Results []*result `protobuf:"bytes,1,rep,name=results"`
}

// The members of a oneof are on the wire what fields of their own are.
type result struct {
	Response *answer  `protobuf:"bytes,1,opt,name=response"`
	Error    *failure `protobuf:"bytes,2,opt,name=error"`
}

type questions struct {
	Requests []*question `protobuf:"bytes,1,rep,name=requests"`
}

type question struct {
	ID      *uint64 `protobuf:"varint,1,opt,name=id"`
	Request *ask    `protobuf:"bytes,2,opt,name=request"`
}

type replies struct {
	Results []*reply `protobuf:"bytes,1,rep,name=results"`
}

type reply struct {
	ID       *uint64  `protobuf:"varint,1,opt,name=id"`
	Response *answer  `protobuf:"bytes,2,opt,name=response"`
	Error    *failure `protobuf:"bytes,3,opt,name=error"`
}

type refund struct {
	Resource *string `protobuf:"bytes,1,opt,name=resource"`
	Consumer *string `protobuf:"bytes,2,opt,name=consumer"`
	Cost     *uint64 `protobuf:"varint,4,opt,name=cost"`
	ID       *string `protobuf:"bytes,6,opt,name=id"`
}

type refunded struct {
	Applied *bool    `protobuf:"varint,1,opt,name=applied"`
	Limits  []*state `protobuf:"bytes,2,rep,name=limits"`
}

type state struct {
	Name      *string `protobuf:"bytes,1,opt,name=name"`
	Remaining *uint64 `protobuf:"varint,3,opt,name=remaining"`
}

// A question for one thing at a time, as most are.
func asking(resource, consumer string) *ask {
	return &ask{Resource: &resource, Consumer: &consumer}
}

func (asked *ask) costing(cost uint64) *ask {
	asked.Cost = &cost
	return asked
}

func (asked *ask) by(attribute, value string) *ask {
	asked.Attributes = map[string]string{attribute: value}
	return asked
}

// One or more questions of a stream.
func streamed(first uint64, asked ...*ask) *questions {
	all := &questions{}
	for i, one := range asked {
		all.Requests = append(all.Requests, &question{ID: some(first + uint64(i)), Request: one})
	}
	return all
}

func some[T any](value T) *T { return &value }

// What a field says; nothing, where it is not there.
func get[T any](field *T) (value T) {
	if field != nil {
		value = *field
	}
	return value
}

// What makes them messages to the library.

func (*ask) Reset()               {}
func (*ask) String() string       { return "" }
func (*ask) ProtoMessage()        {}
func (*answer) Reset()            {}
func (*answer) String() string    { return "" }
func (*answer) ProtoMessage()     {}
func (*batch) Reset()             {}
func (*batch) String() string     { return "" }
func (*batch) ProtoMessage()      {}
func (*results) Reset()           {}
func (*results) String() string   { return "" }
func (*results) ProtoMessage()    {}
func (*questions) Reset()         {}
func (*questions) String() string { return "" }
func (*questions) ProtoMessage()  {}
func (*replies) Reset()           {}
func (*replies) String() string   { return "" }
func (*replies) ProtoMessage()    {}
func (*refund) Reset()            {}
func (*refund) String() string    { return "" }
func (*refund) ProtoMessage()     {}
func (*refunded) Reset()          {}
func (*refunded) String() string  { return "" }
func (*refunded) ProtoMessage()   {}
