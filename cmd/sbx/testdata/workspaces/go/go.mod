module greeter

go 1.21

require example.com/greet v0.0.0

replace example.com/greet => ./third/greet
