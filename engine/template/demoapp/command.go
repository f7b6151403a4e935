// Package demoapp is the app of the demo template: a small web shop that needs
// nothing but the binary it is in, and that fails as real programs do.
//
// The one rule: it is an app like any other. It knows nothing of who runs it,
// and says what is wrong on its output.
package demoapp

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// Command runs the app as a program of its own: on $PORT, in the working
// directory, until SIGTERM or SIGINT. It returns the exit code.
//
//	demo-app                 serve the shop
//	demo-app --install       put the parts that parts.lock lists back
//	demo-app --static DIR    serve the files of DIR
func Command(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return command(ctx, args, os.Getenv("PORT"), os.Stdout, os.Stderr)
}

func command(ctx context.Context, args []string, port string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("demo-app", flag.ContinueOnError)
	flags.SetOutput(stderr)
	install := flags.Bool("install", false, "put the parts that parts.lock lists back")
	static := flags.String("static", "", "serve the files of a directory")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *install {
		return Install(".", stdout, stderr)
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		fmt.Fprintf(stderr, "PORT is %q: set it to a number\n", port)
		return 1
	}
	if *static != "" {
		return Static(ctx, *static, n, stdout, stderr)
	}
	return Main(ctx, ".", n, stdout, stderr)
}

// failed says why the app can't go on. It returns the exit code.
func failed(stderr io.Writer, err error) int {
	if err == nil || errors.Is(err, context.Canceled) {
		return 0
	}
	fmt.Fprintln(stderr, err)
	return 1
}
