// Greeter is a server that greets.
package main

import (
	"fmt"
	"net/http"
	"os"

	"example.com/greet"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, greet.Hello("world")) })
	fmt.Println("listening")
	if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
