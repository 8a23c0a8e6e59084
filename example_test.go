package braid_test

import (
	"context"
	"fmt"
	"io"
	"log"

	"braid"
)

func Example() {
	ctx := context.Background()
	listener, err := braid.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.Copy(conn, conn)
			}()
		}
	}()

	conn, err := braid.Dial(ctx, listener.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "hello over every path")
	conn.CloseWrite()
	answer, err := io.ReadAll(conn)
	fmt.Println(string(answer), err)
	// Output: hello over every path <nil>
}
