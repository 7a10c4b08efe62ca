package respcheck

// Message returns what receive does, which is a call of go-redis that waits for a message of a subscription. go-redis
// (v9.23.0, pubsub.go, newMessage) panics where a message has not the shape that Redis gives it: that is an [*Error] of
// server here, after which the subscription is of no more use.
func Message(server string, receive func() (any, error)) (got any, err error) {
	defer func() {
		if recover() != nil {
			got, err = nil, &Error{Server: server, What: "a message of a shape that no message of Redis has"}
		}
	}()
	return receive()
}
