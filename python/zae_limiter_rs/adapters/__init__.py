"""Limits for the calls of clients that other packages provide: OpenAI, Anthropic, LiteLLM and LangChain.

Each call takes an estimate of its tokens before it is sent, and is corrected by the usage of its response. None of those
packages is needed to import this one.
"""

from ..money import Usage
from .estimates import ModelLimits, requests, requests_and_tokens, resource_name

__all__ = ["ModelLimits", "Usage", "requests", "requests_and_tokens", "resource_name"]
