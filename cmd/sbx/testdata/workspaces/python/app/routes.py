def route(path):
    return "hello" if path == "/" else "not here"
