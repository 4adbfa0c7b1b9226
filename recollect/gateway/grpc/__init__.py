"""gRPC: every declared operation as a typed call of the service `recollect.v1.Recollect`.

`recollect.proto` beside this file is what clients of other languages are made from. It is written
from the declarations by `python -m recollect.gateway.grpc.generate`, keeps the numbers that it
once gave, and is what is served: no generated Python is needed.
"""
