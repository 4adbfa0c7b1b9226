"""Recollect behind the interfaces of agent frameworks, each in a module of its own.

A module imports its framework; nothing else does. `docs/integrations.md` says what each offers.
"""
