"""DROP FEATURE: remove what a feature left in a table, and then the feature from its protocol."""

from pyspark_delta.maintenance.drop_feature.plan import DropFeaturePlan, DropFeatureResult, plan_drop_feature

__all__ = ["DropFeaturePlan", "DropFeatureResult", "plan_drop_feature"]
